"""Looks at the values of parameters: which can be read, and reductions that go to the host in one transfer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_capturing() -> bool:
    """Return whether the current stream records a CUDA graph, in which no value may be read."""
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_plain(tensor: Any) -> bool:
    """Return whether a tensor's values can be read here: a DTensor's would be a collective, a meta tensor has none."""
    import torch

    return (
        type(tensor) in {torch.Tensor, torch.nn.Parameter}
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and tensor.numel() > 0
    )


def reduce_all(tensors: list[Any], reduction: Callable[[Any], Any]) -> list[Any]:
    """Return a number for each tensor, in one transfer.

    Args:
        tensors: any shapes and devices.
        reduction: what gives a tensor without dimensions, of one dtype for all.
    """
    import torch

    if not tensors:
        return []
    with torch.no_grad():
        values = [reduction(tensor.detach()) for tensor in tensors]
        numbers: list[Any] = torch.stack([value.to(values[0].device) for value in values]).tolist()
    return numbers


def find_not_finite(tensors: list[Any]) -> list[Any]:
    """Return those of the floating tensors that have an infinite element or NaN."""
    import torch

    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    # A sum needs no memory; that of large elements may itself be infinite.
    sums = reduce_all(floating, lambda tensor: tensor.sum(dtype=torch.float32))
    suspects = [tensor for tensor, total in zip(floating, sums) if total - total != 0]
    return [tensor for tensor in suspects if not bool(tensor.detach().isfinite().all())]


def bit_sums(tensors: list[Any]) -> list[int]:
    """Return a sum over each tensor's bits, which changes with the last bit of one element."""
    import torch

    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}

    def add(tensor: Any) -> Any:
        real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        return real.view(kinds[real.element_size()]).sum(dtype=torch.int64)

    return reduce_all(tensors, add)
