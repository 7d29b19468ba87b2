"""Pickling of device tensors for other processes (`torch.multiprocessing`).

CUDA shares device memory with another process through CUDA IPC. Device memory is host memory here, which torch can
share already: a tensor is sent as shared host memory, and the receiver copies it to its device.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch


def register() -> None:
    """Register how tensors and parameters are pickled for another process, which has simulated GPUs from its start."""
    for tensor_class in (torch.Tensor, torch.nn.Parameter):
        _register_reducer(tensor_class)


def _register_reducer(kind: type) -> None:
    original = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]

    def reduce(value: Any) -> Any:
        if value.device.type != "cuda":
            return original(value) if original is not None else value.__reduce_ex__(2)
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "a tensor that requires gradients and is not a leaf cannot be sent to another process, because its"
                " history stays in this one; send tensor.detach()"
            )
        host = value.detach().cpu().share_memory_()
        # The shared memory must outlive this call until the other process has opened it.
        value._shared_with_others = host
        return _tensor_from_host, (type(value), host, str(value.device), value.requires_grad)

    ForkingPickler.register(kind, reduce)


def _tensor_from_host(kind: type, host: torch.Tensor, device: str, requires_grad: bool) -> torch.Tensor:
    tensor = host.to(device)
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)
