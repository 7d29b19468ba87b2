"""Copies between the devices of one process (torch/csrc/cuda/comm.cpp), of which `DataParallel` is made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .refused import SINGLE_PROCESS_NCCL

_SUM = 0
"""NCCL's number for the sum (`ncclSum`)."""


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for copies between devices."""
    return {
        "_broadcast": _broadcast,
        "_broadcast_out": lambda tensor, outs: [out.copy_(tensor) for out in outs],
        "_broadcast_coalesced": _broadcast_coalesced,
        "_scatter": _scatter,
        "_scatter_out": _scatter_out,
        "_gather": _gather,
        "_gather_out": _gather_out,
        "_nccl_reduce": _reduce,
    }


def _torch() -> Any:
    return sys.modules["torch"]


def _place(index: int) -> Any:
    return _torch().device("cpu") if index == -1 else _torch().device("cuda", index)


def _broadcast(tensor: Any, devices: Sequence[int]) -> list[Any]:
    return [tensor.to(_place(index)) for index in devices]


def _broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[int], _buffer_size: int = 0) -> list[list[Any]]:
    return [[tensor.to(_place(index)) for tensor in tensors] for index in devices]


def _scatter(
    tensor: Any, devices: Sequence[int], chunk_sizes: Any = None, dim: int = 0, _streams: Any = None
) -> list[Any]:
    parts = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim)
    return [part.to(_place(index)) for part, index in zip(parts, devices)]


def _scatter_out(tensor: Any, outs: Sequence[Any], dim: int = 0, _streams: Any = None) -> list[Any]:
    parts = tensor.split([out.size(dim) for out in outs], dim)
    return [out.copy_(part) for out, part in zip(outs, parts)]


def _gather(tensors: Sequence[Any], dim: int = 0, destination: int | None = None) -> Any:
    place = _place(_torch().cuda.current_device() if destination is None else destination)
    return _torch().cat([tensor.to(place) for tensor in tensors], dim)


def _reduce(
    inputs: Sequence[Any], output: Any, _root: int = 0, operation: int = 0, _streams: Any = None, _comms: Any = None
) -> None:
    """Add the tensors of all devices (torch/csrc/cuda/python_nccl.cpp, `THCPModule_nccl_reduce`)."""
    if operation != _SUM:
        raise RuntimeError(SINGLE_PROCESS_NCCL)
    total = inputs[0].to(output.device, copy=True)
    for tensor in inputs[1:]:
        total += tensor.to(output.device)
    output.copy_(total)


def _gather_out(tensors: Sequence[Any], out: Any, dim: int = 0) -> Any:
    return out.copy_(_torch().cat([tensor.to(out.device) for tensor in tensors], dim))
