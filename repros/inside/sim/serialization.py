"""Location handlers for `torch.save` and `torch.load`: storages on a sim device, in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import serialization

if TYPE_CHECKING:
    from types import ModuleType

_PRIORITY = 9  # before torch's own handlers, the first of which (the CPU's) is at 10
_extension: Any = None


def register(extension: ModuleType) -> None:
    """Register the location handlers of the sim device with torch's file format."""
    global _extension  # noqa: PLW0603 # a process has one
    _extension = extension
    # torch's own handlers for such a device exist from 2.1 only; one pair for all versions behaves alike in all.
    serialization.register_package(_PRIORITY, _location, _deserialize)


def _location(storage: Any) -> str | None:
    device = storage.device
    return f"{device.type}:{device.index}" if device.type == "sim" else None


def _deserialize(storage: Any, location: str) -> Any:
    if not location.startswith("sim"):
        return None
    index = torch.device(location).index
    count = _extension.device_count()
    index = _extension.current_device() if index is None else index
    if index >= count:
        msg = (
            f"Attempting to deserialize object on sim device {index} but there are {count} sim devices. Please use "
            "torch.load with map_location to map your storages to an existing device."
        )
        raise RuntimeError(msg)
    return _copy_to_device(storage, index)


def _copy_to_device(storage: Any, index: int) -> Any:
    target = torch.empty(0, dtype=torch.uint8, device=torch.device("sim", index))
    source = torch.empty(0, dtype=torch.uint8).set_(getattr(storage, "_untyped_storage", storage))
    return target.resize_(len(source)).copy_(source).untyped_storage()
