"""Device tensors on their way: into files, out of files, and to other processes."""

from __future__ import annotations

import io
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
    global _extension
    _extension = extension
    # torch's own handlers for such a device are there from 2.1 only; one pair for all versions behaves alike in all.
    serialization.register_package(_PRIORITY, _location, _place)
    for tensor_class in (torch.Tensor, torch.nn.Parameter):
        _share(tensor_class)
    _share(torch.UntypedStorage)


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
# CUDA hands memory to another process through CUDA IPC. Here a tensor goes by value, as the file format packs it, and is put
# on its device at the other end. Not as shared host memory: that travels as a file descriptor, which lives only as long as
# the host copy does, and nothing keeps the copy until the process has been started.


def _share(kind: type) -> None:
    original = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]

    def reduce(value: Any) -> Any:
        if value.device.type != "sim":
            return original(value) if original is not None else value.__reduce_ex__(2)
        if isinstance(value, torch.UntypedStorage):
            bare = torch.empty(0, dtype=torch.uint8, device=value.device).set_(value)
            return _storage_from_host, (_packed(bare.cpu()), value.device.index)
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
                "serializing (e.g., putting it on the queue)."
            )
        packed = _packed(value.detach().cpu())
        return _tensor_from_host, (type(value), packed, value.device.index, value.requires_grad)

    ForkingPickler.register(kind, reduce)


def _packed(host: torch.Tensor) -> bytes:
    with io.BytesIO() as file:
        torch.save(host, file)
        return file.getvalue()


def _unpacked(packed: bytes) -> Any:
    with io.BytesIO(packed) as file:
        return torch.load(file, map_location="cpu")


def _tensor_from_host(kind: type, packed: bytes, index: int, requires_grad: bool) -> torch.Tensor:
    tensor = _unpacked(packed).to(torch.device("sim", index))
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _storage_from_host(packed: bytes, index: int) -> Any:
    return _storage_on_device(_unpacked(packed).untyped_storage(), index)
