"""Replacements once torch is imported, for functions that call CUDA's runtime in compiled code."""

from __future__ import annotations

from typing import Any

from . import autograd, compilers, extension, nccl, nvml, profiling, storages
from .toolkit import VERSION


def finish(torch: Any) -> None:
    """Replace them.

    Args:
        torch: the imported module.
    """
    from . import process_transfer

    if torch.version.cuda is None:
        torch.version.cuda = VERSION
        for tensor_type in torch._tensor_classes:
            if tensor_type.is_cuda:
                extension.get().allow_tensor_type(tensor_type)
    # A real GPU that is hidden would be counted.
    if hasattr(torch.cuda, "_device_count_nvml"):
        torch.cuda._device_count_nvml = lambda: -1
    _keep_torchscript_from_compiling(torch)
    extension.get().replace_generator_constructor()
    storages.install(torch)
    compilers.install()
    nvml.install(torch)
    process_transfer.register()
    nccl.install(torch)
    autograd.install(torch)
    profiling.install(torch)


def _keep_torchscript_from_compiling(torch: Any) -> None:
    """Switch off TorchScript's fusers, which compile a GPU kernel once a function has run twice."""
    torch._C._jit_override_can_fuse_on_gpu(False)
    if torch.__version__.startswith("2.0."):  # later releases do not have nvFuser, and warn
        torch._C._jit_set_nvfuser_enabled(False)
