"""Device tensors on their way: into files, out of files, and to other processes."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import torch
from torch import serialization

if TYPE_CHECKING:
    from types import ModuleType

_PRIORITY = 9  # before torch's own handlers, the first of which (the CPU's) is at 10
_extension: Any = None


def register(extension: ModuleType) -> None:
    """Registers the file format's location handlers and the reducer for spawned processes."""
    global _extension  # noqa: PLW0603 # a process has one
    _extension = extension
    # torch's own handlers for such a device are there from 2.1 only; one pair for all versions behaves alike in all.
    serialization.register_package(_PRIORITY, _location, _place)
    for tensor_class in (torch.Tensor, torch.nn.Parameter):
        _share(tensor_class)


# --- torch.save and torch.load


def _location(storage: Any) -> str | None:
    device = storage.device
    return f"{device.type}:{device.index}" if device.type == "sim" else None


def _place(storage: Any, location: str) -> Any:
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
    return _storage_on_device(storage, index)


def _storage_on_device(storage: Any, index: int) -> Any:
    there = torch.empty(0, dtype=torch.uint8, device=torch.device("sim", index))
    here = torch.empty(0, dtype=torch.uint8).set_(getattr(storage, "_untyped_storage", storage))
    return there.resize_(len(here)).copy_(here).untyped_storage()


# --- spawned processes
# CUDA hands memory to another process through CUDA IPC. Here the bytes are host memory, which torch can share already:
# a tensor goes as shared host memory and is put on its device at the other end, as a copy.


def _share(kind: type) -> None:
    original = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]

    def reduce(value: Any) -> Any:
        if value.device.type != "sim":
            return original(value) if original is not None else value.__reduce_ex__(2)
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "a tensor that requires gradients and is no leaf cannot be sent to another process, as its history"
                " stays here; send tensor.detach()"
            )
        host = value.detach().cpu().share_memory_()
        # Until the other process has opened it, the shared memory must outlive this call.
        value._shared_with_others = host
        return _tensor_from_host, (type(value), host, value.device.index, value.requires_grad)

    ForkingPickler.register(kind, reduce)


def _tensor_from_host(kind: type, host: torch.Tensor, index: int, requires_grad: bool) -> torch.Tensor:
    from . import load

    load()  # in a fresh process, arguments arrive before the program's own code has run
    tensor = host.to(torch.device("sim", index))
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)
