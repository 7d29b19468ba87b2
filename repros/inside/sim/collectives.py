"""The process-group backend `simccl`: for sim tensors only, as NCCL is for CUDA tensors only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from datetime import timedelta
    from types import ModuleType

BACKEND = "simccl"


def register(extension: ModuleType) -> None:
    """Registers the backend and makes it the default for sim devices; nothing where torch has no such registry."""
    if not torch.distributed.is_available() or not hasattr(extension, "collectives"):
        return

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        return extension.collectives(torch.distributed.ProcessGroupGloo(store, rank, size, timeout=timeout))

    torch.distributed.Backend.register_backend(BACKEND, create, devices=["sim"])
