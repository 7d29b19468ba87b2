"""What is replaced once torch is imported: the places that ask CUDA's runtime in compiled code."""

from __future__ import annotations

import atexit
import time
from typing import Any

from . import extension, nccl, storages
from .toolkit import VERSION


def finish(torch: Any) -> None:
    """Replace them.

    Args:
        torch: the imported module.
    """
    from . import process_transfer

    if torch.version.cuda is None:
        torch.version.cuda = VERSION
    # A real GPU that is hidden would be counted.
    if hasattr(torch.cuda, "_device_count_nvml"):
        torch.cuda._device_count_nvml = lambda: -1
    extension.get().replace_generator_constructor()
    storages.install(torch)
    process_transfer.register()
    nccl.install(torch)
    atexit.register(_let_autograd_end)


_GRACE = 0.03
"""Seconds, which only a process that has used the devices waits at its end."""


def _let_autograd_end() -> None:
    # A device's autograd thread may still free what `backward` held when that has returned. If the interpreter ends
    # meanwhile, the process aborts ("terminate called without an active exception"): seen on 2.13, one run in two of a
    # script that ends with `backward`.
    if extension.get().has_allocated():
        time.sleep(_GRACE)
