"""Setup of a process, when it imports torch. Nothing is loaded before, and nothing without torch."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from .errors import SimUnavailableError
from .import_hooks import before_import, when_imported

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_ANNOUNCED = "REPROS_SIM_ANNOUNCED"
"""Set once a process of this job has printed the devices; its children inherit it."""


def install() -> None:
    """Simulate this process's `cuda` devices as soon as it imports torch. Further calls do nothing.

    Raises:
        SimUnavailableError: torch is already imported, and has decided that there is no GPU.
    """
    if _installed:
        return
    if "torch" in sys.modules:
        raise SimUnavailableError("torch is already imported; simulated GPUs must be set up before it is")
    _installed.append(True)
    before_import("torch._C", _load_kernels)
    when_imported("torch._C", _provide_bindings)
    when_imported("torch", _finish)


_installed: list[bool] = []


def _load_kernels(_spec: ModuleSpec) -> None:
    # torch._C asks for CUDA's hooks while it is initialised, and keeps the answer.
    from . import build, memory_size, real_gpus

    if os.environ.get("REPROS_SIM_HIDE_GPUS") != "1":
        real_gpus.refuse()
    memory_size.chosen_memory()  # refuses a wrong setting before a minute of compilation
    library = build.shared_object()
    import ctypes

    root = build.installed_torch().root
    ctypes.CDLL(str(root / "lib" / "libtorch_python.so"))
    ctypes.CDLL(str(library))
    _shared_object.append(str(library))


_shared_object: list[str] = []


def _provide_bindings(c: Any) -> None:
    from . import bindings, extension

    extension.load(_shared_object[0])
    bindings.provide(c)


def _finish(torch: Any) -> None:
    from . import finish

    finish.finish(torch)
    if os.environ.get(_ANNOUNCED) != "1":
        os.environ[_ANNOUNCED] = "1"
        count = torch.cuda.device_count()
        name = torch.cuda.get_device_name(0) if count else "none visible"
        what = f"{count} x {name}" if count else name
        sys.stderr.write(f"simulated GPUs in the place of cuda: {what} (host memory; nothing here measures a GPU)\n")
