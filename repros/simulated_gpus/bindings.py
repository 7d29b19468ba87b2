"""The functions and classes of `torch._C` in a CUDA build, which `torch.cuda` uses."""

from __future__ import annotations

import sys
from typing import Any

from . import attention, compilers, devices, extension, graphs, memory, parallel, refused, streams, toolkit, tunable
from .memory_size import chosen_memory
from .profiles import chosen_profile


def provide(c: Any) -> None:
    """Set the functions and classes on `torch._C`, before `torch.cuda` looks for them.

    Args:
        c: the module `torch._C`.
    """
    compilers.leave_out_native_kernels()
    profile = chosen_profile()
    extension.get().set_capability(*profile.capability)
    extension.get().set_multiprocessors(profile.multiprocessors, profile.threads)
    memory_bytes = chosen_memory()
    if memory_bytes is not None:
        extension.get().set_device_bytes(memory_bytes)
    for part in (attention, devices, graphs, memory, parallel, refused, toolkit, tunable):
        for name, function in part.functions().items():
            setattr(c, name, function)
    for name, function in streams.functions(c).items():
        setattr(c, name, function)
    for name, module in toolkit.modules(c).items():
        setattr(c, name, module)
        sys.modules[f"torch._C.{name}"] = module
    for name in [name for name in vars(c) if name.startswith("_gds_")]:
        delattr(c, name)  # GPUDirect Storage hangs without a driver; PyTorch says itself that it is missing
    c._has_gds = False
    c._has_cuda = True
    c._has_cudnn = True
