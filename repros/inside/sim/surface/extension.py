"""Access to the compiled extension, and parsing of device arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import ModuleType

Device = Any
"""torch.device | str | int | None"""

_extensions: list[Any] = []


def set_extension(extension: ModuleType) -> None:
    """Set the extension that `torch.sim` calls; a process has one."""
    _extensions[:] = [extension]


def get_extension() -> Any:
    """Return the extension."""
    return _extensions[0]


def device_index(device: Device) -> int:
    """Return a device's index; the current device's for None, "sim" and a device without an index.

    Raises:
        ValueError: the device is not a sim device.
    """
    if isinstance(device, int):
        return device
    device = torch.device("sim" if device is None else device)
    if device.type != "sim":
        raise ValueError(f"Expected a sim device, but got: {device}")
    return int(get_extension().current_device()) if device.index is None else device.index


def existing_device_index(device: Device) -> int:
    """Return a device's index, as `device_index` does, if there is such a device.

    Raises:
        RuntimeError: there is no such device; the message is the CUDA runtime's.
    """
    index = device_index(device)
    if not 0 <= index < get_extension().device_count():
        raise RuntimeError(f"sim error: invalid device ordinal {index}")
    return index
