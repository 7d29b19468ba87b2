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
        "_broadcast_out": _broadcast_out,
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


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _check_indices(devices: Sequence[int]) -> None:
    for index in devices:
        _check(index >= 0, f"Expected non-negative device index, but got {index}")


def _check_cuda(tensors: Sequence[Any], words: str, quote: str = "'") -> None:
    for index, tensor in enumerate(tensors):
        device = f"{quote}{tensor.device}{quote}"
        _check(tensor.is_cuda, f"Expected all {words} at index {index} has device {device}")


_OUTPUTS = "output tensors to be CUDA tensors, but output tensor"
_INPUTS = "input tensors to be CUDA tensors, but tensor"


def _wrap(dim: int, tensor: Any) -> int:
    """Return a dimension counted from the front; raise torch's error if the tensor does not have it."""
    tensor.size(dim)
    return int(dim % tensor.dim())


def _shape(sizes: Sequence[int]) -> str:
    """Return sizes as C++ prints them."""
    return f"[{', '.join(map(str, sizes))}]"


def _broadcast(tensor: Any, devices: Sequence[int]) -> list[Any]:
    _check_indices(devices)
    return [tensor.to(_place(index)) for index in devices]


def _broadcast_out(tensor: Any, out: Sequence[Any]) -> list[Any]:
    _check_cuda(out, _OUTPUTS)
    for index, output in enumerate(out):
        words = f"Expected all output tensors to have same shape as the source tensor {_shape(tensor.shape)}, but "
        _check(output.shape == tensor.shape, f"{words}output tensor at index {index} has shape {_shape(output.shape)}")
    return [output.copy_(tensor) for output in out]


def _broadcast_coalesced(
    tensors: Sequence[Any],
    devices: Sequence[int],
    buffer_size: int = 0,  # noqa: ARG001 # in CUDA's signature
) -> list[list[Any]]:
    on_first = all(tensor.get_device() == devices[0] for tensor in tensors)
    _check(on_first, f"All tensors must be on devices[0]: {devices[0]}")
    return [[tensor.to(_place(index)) for tensor in tensors] for index in devices]


def _scatter(
    tensor: Any, devices: Sequence[int], chunk_sizes: Any = None, dim: int = 0, streams: Any = None
) -> list[Any]:
    _check(len(devices) > 0, "Expected at least one device to scatter to")
    if chunk_sizes is not None:
        lengths = f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
        words = f"Expected devices and chunk_sizes to be of same length, but got {lengths}"
        _check(len(chunk_sizes) == len(devices), words)
    parts = tensor.split(chunk_sizes, dim) if chunk_sizes is not None else tensor.chunk(len(devices), dim)
    _check_streams(streams, devices)
    _check_indices(devices)
    return [part.to(_place(index)) for part, index in zip(parts, devices)]


def _check_streams(streams: Any, devices: Sequence[int]) -> None:
    for index, (stream, device) in enumerate(zip(streams or (), devices)):
        if stream is not None:
            words = f"Expected the device associated with the stream at index {index} (was {stream.device_index})"
            tail = f"to match the device supplied at that index (expected {device})"
            _check(stream.device_index == device, f"{words} {tail}")


def _scatter_out(tensor: Any, out: Sequence[Any], dim: int = 0, streams: Any = None) -> list[Any]:
    _check(len(out) > 0, "Expected at least one output tensor to scatter to")
    _check_cuda(out, _OUTPUTS)
    dim = _wrap(dim, tensor)
    for index, output in enumerate(out):
        fits = [*output.shape[:dim], *output.shape[dim + 1 :]] == [*tensor.shape[:dim], *tensor.shape[dim + 1 :]]
        words = f"Output tensor at index {index} has incorrect shape: {_shape(output.shape)}. "
        words += "Expected same shape except"
        tail = f"for scatter dim {dim} as the source tensor: {_shape(tensor.shape)}"
        _check(output.dim() == tensor.dim() and fits, f"{words} {tail}")
    total = sum(output.size(dim) for output in out)
    words = f"Total size for output tensors along scatter dim {dim} does not match the source tensor size at dim {dim}"
    _check(total == tensor.size(dim), f"{words}. Expected {tensor.size(dim)}, but got total size {total}")
    _check_streams(streams, [output.get_device() for output in out])
    parts = tensor.split([output.size(dim) for output in out], dim)
    return [output.copy_(part) for output, part in zip(out, parts)]


def _gather(tensors: Sequence[Any], dim: int = 0, destination_index: int | None = None) -> Any:
    _gathered_shape(tensors, dim, quote="")
    place = _place(_torch().cuda.current_device() if destination_index is None else destination_index)
    return _torch().cat([tensor.to(place) for tensor in tensors], dim)


def _gather_out(tensors: Sequence[Any], out: Any, dim: int = 0) -> Any:
    wanted = _gathered_shape(tensors, dim)
    words = f"Expected out tensor to have shape {_shape(wanted)}, but got {_shape(out.shape)}"
    _check(list(out.shape) == wanted, words)
    return out.copy_(_torch().cat([tensor.to(out.device) for tensor in tensors], dim))


def _gathered_shape(tensors: Sequence[Any], dim: int, quote: str = "'") -> list[int]:
    """Return the shape of all tensors along `dim`, which they may differ in; raise CUDA's error if they do not fit."""
    _check(len(tensors) > 0, "Expected at least one tensor to gather from")
    _check_cuda(tensors, _INPUTS, quote)
    dim = _wrap(dim, tensors[0])
    wanted = list(tensors[0].shape)
    for index, tensor in enumerate(tensors):
        words = f"Expected all input tensors to have the same number of dimensions, but tensor at index {index}has"
        _check(tensor.dim() == len(wanted), f"{words} {tensor.dim()} dimensions, (expected {len(wanted)})")
        wanted[dim] = tensor.size(dim)
        shape = _shape(tensor.shape)
        words = f"Input tensor at index {index} has invalid shape {shape}, but expected {_shape(wanted)}"
        _check(list(tensor.shape) == wanted, words)
    wanted[dim] = sum(tensor.size(dim) for tensor in tensors)
    return wanted


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
