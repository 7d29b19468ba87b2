"""The simulated accelerator: `torch.device("sim")`, an accelerator made of host memory that holds CUDA's contracts.

Importing this package loads nothing; `load()` does, and `arm.install()` arranges for it to happen when torch is
imported. `REPROS_SIM_DEVICES` says how many devices there are (2 unless set).
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SimUnavailableError", "load", "shared_object"]


class SimUnavailableError(RuntimeError):
    """The simulated accelerator cannot be had here; the message is one sentence that says why and what would help."""


def shared_object() -> Path:
    """Builds the extension for this interpreter and its torch unless it is in the cache; torch is not imported.

    Raises:
        SimUnavailableError: no torch (or one too old, or without headers), no compiler, or a build that failed.
    """
    from . import build  # late: arming a process imports this package, and must cost it nothing

    return build.shared_object()


@functools.cache
def load() -> None:
    """Makes `torch.device("sim")` and `torch.sim` work in this process; builds the extension first where needed.

    Calling it again does nothing.

    Raises:
        SimUnavailableError: there is no shared object and none can be built.
    """
    import torch

    # The engine's hook and an installed project are two copies of this package; one of them loads it.
    if hasattr(torch, "sim"):
        return
    from . import backend, bridges

    backend.register(shared_object())
    bridges.install()


def _autoload() -> None:
    """The `torch.backends` entry point: called at the end of `import torch` from torch 2.5 on.

    Only with `REPROS_SIM=1`: having this project installed must not change what `import torch` does, or costs.
    """
    if os.environ.get("REPROS_SIM") == "1":
        load()
