"""The process-group backend `simccl`: for sim tensors only, as NCCL is for CUDA tensors only."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from datetime import timedelta
    from types import ModuleType

BACKEND = "simccl"


def register(extension: ModuleType) -> None:
    """Register the backend as the default for sim devices; do nothing where torch has no such registry."""
    if not torch.distributed.is_available() or not hasattr(extension, "collectives"):
        return

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        return extension.collectives(torch.distributed.ProcessGroupGloo(store, rank, size, timeout=timeout))

    torch.distributed.Backend.register_backend(BACKEND, create, devices=["sim"])
    let_gloo_take_device_tensors(extension, "sim")


# --- torch/distributed/distributed_c10d.py `Backend.backend_capability`: `GLOO: ["cpu", "cuda"]`
#     A Gloo group serves CUDA tensors too, by copying them to the host. In a job whose ranks are bound to a device,
#     `_new_process_group_helper` asks the new group for its backend for that device, and raises if there is none.
#     Gloo itself refuses tensors on this device, so its group gets a backend for them that aliases their host memory.


def let_gloo_take_device_tensors(extension: ModuleType, name: str) -> None:
    """Give each new Gloo group a backend for this device.

    Args:
        extension: the compiled extension.
        name: the device's type.
    """
    if not torch.distributed.is_available() or not hasattr(extension, "collectives"):
        return
    c10d, device = torch.distributed.distributed_c10d, torch.device(name)
    devices = c10d.Backend.backend_capability["gloo"]
    if name not in devices:
        devices.append(name)
    original = c10d._new_process_group_helper

    @functools.wraps(original)
    def new_process_group(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        group = made[0]
        if isinstance(group, c10d.ProcessGroup) and device in group._device_types:
            backend = group._get_backend(device)
            if isinstance(backend, c10d.ProcessGroupGloo):
                group._register_backend(device, c10d.ProcessGroup.BackendType.CUSTOM, extension.collectives(backend))
        return made

    c10d._new_process_group_helper = new_process_group
