"""The simulated accelerator: `torch.device("sim")`, a device made of host memory that follows CUDA's rules.

Importing this package loads nothing. `load()` makes the device available; `arm.install()` calls it once torch is
imported. `REPROS_SIM_DEVICES` sets the number of devices (default: 2).
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from .errors import SimUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SimUnavailableError", "load", "shared_object"]


def shared_object() -> Path:
    """Build the extension for this interpreter and its torch unless it is cached, without importing torch.

    Returns:
        The shared object.

    Raises:
        SimUnavailableError: torch is missing, too old or without headers; no compiler was found; or the build failed.
    """
    from . import build  # late, because arming a process imports this package and must be nearly free

    return build.shared_object()


@functools.cache
def load() -> None:
    """Make `torch.device("sim")` and `torch.sim` available in this process; build the extension first if needed.

    Further calls do nothing.

    Raises:
        SimUnavailableError: there is no shared object and none can be built.
    """
    import torch

    # The engine's hook and an installed project are two copies of this package; one of them loads it.
    if hasattr(torch, "sim"):
        return
    from . import backend, bridges

    backend.register(shared_object(), load)
    bridges.install()


def _autoload() -> None:
    """Load the device if `REPROS_SIM=1`: the `torch.backends` entry point, called by `import torch` from torch 2.5.

    Without that setting an installed copy must not change what `import torch` does, or its cost.
    """
    if os.environ.get("REPROS_SIM") == "1":
        load()
