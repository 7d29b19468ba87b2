"""The compiled part, as the surface asks it, and what is meant by a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import ModuleType

Device = Any
"""torch.device | str | int | None"""

_extensions: list[Any] = []


def use(extension: ModuleType) -> None:
    """Says which extension answers; a process has one."""
    _extensions[:] = [extension]


def ask() -> Any:
    """The extension."""
    return _extensions[0]


def index_of(device: Device) -> int:
    """A device's index; that of the current device for None, "sim", or an index that is missing.

    Raises:
        ValueError: the device is another kind of device.
    """
    if isinstance(device, int):
        return device
    device = torch.device("sim" if device is None else device)
    if device.type != "sim":
        raise ValueError(f"Expected a sim device, but got: {device}")
    return int(ask().current_device()) if device.index is None else device.index


def existing(device: Device) -> int:
    """The same, of a device that there is.

    Raises:
        RuntimeError: there is no such device, in the words of CUDA's runtime.
    """
    index = index_of(device)
    if not 0 <= index < ask().device_count():
        raise RuntimeError(f"sim error: invalid device ordinal {index}")
    return index
