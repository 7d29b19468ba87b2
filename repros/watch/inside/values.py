"""Looks at the values of parameters: which can be read, and reductions that go to the host in one transfer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def is_capturing() -> bool:
    """Return whether the current stream records a CUDA graph, in which no value may be read."""
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_plain(tensor: Any) -> bool:
    """Return whether a tensor's values can be read here: a DTensor's would be a collective, a meta tensor has none."""
    torch = sys.modules["torch"]  # asked of each parameter, for which an `import` takes too long
    kind = type(tensor)
    is_own = kind is torch.nn.Parameter or kind is torch.Tensor
    return is_own and tensor.layout is torch.strided and not tensor.is_meta and tensor.numel() > 0


def reduce_all(tensors: list[Any], reduction: Callable[[Any], Any]) -> list[Any]:
    """Return a number for each tensor, in one transfer.

    Args:
        tensors: any shapes and devices.
        reduction: what gives a tensor without dimensions, of one dtype for all.
    """
    import torch

    with torch.no_grad():
        return to_host([reduction(tensor.detach()) for tensor in tensors])


def norms_of(tensors: list[Any]) -> list[float]:
    """Return the norms of floating tensors, in one transfer."""
    return to_host(_norms(tensors))


def norms_and_sums(tensors: list[Any]) -> tuple[list[float], list[float]]:
    """Return the norms of floating tensors, and their sums, in one transfer."""
    import torch

    with torch.no_grad():
        sums = [tensor.sum(dtype=torch.float32) for tensor in tensors]
    numbers = to_host([*_norms(tensors), *sums])
    return numbers[: len(tensors)], numbers[len(tensors) :]


def _norms(tensors: list[Any]) -> list[Any]:
    import torch

    if not tensors:
        return []
    with torch.no_grad():
        kinds = {(tensor.dtype, tensor.device) for tensor in tensors}
        if len(kinds) == 1 and tensors[0].dtype == torch.float32 and tensors[0].device.type in {"cpu", "cuda"}:
            return list(torch._foreach_norm(tensors))  # one call for all; it gives norms in the tensors' own dtype
        return [torch.linalg.vector_norm(tensor, dtype=torch.float32) for tensor in tensors]


def to_host(values: list[Any]) -> list[Any]:
    """Return the numbers of tensors without dimensions, of one dtype, in one transfer."""
    import torch

    if not values:
        return []
    device = values[0].device
    with torch.no_grad():
        numbers: list[Any] = torch.stack(
            [value if value.device == device else value.to(device) for value in values]
        ).tolist()
    return numbers


def find_not_finite(tensors: list[Any]) -> list[Any]:
    """Return those of the floating tensors that have an infinite element or NaN."""
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    # A norm needs no memory; that of large elements may itself be infinite.
    suspects = [tensor for tensor, norm in zip(floating, norms_of(floating)) if norm - norm != 0]
    return [tensor for tensor in suspects if not bool(tensor.detach().isfinite().all())]


def bit_sums(tensors: list[Any]) -> list[int]:
    """Return a sum over each tensor's bits, which changes with the last bit of one element."""
    import torch

    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}

    def add(tensor: Any) -> Any:
        real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        return real.view(kinds[real.element_size()]).sum(dtype=torch.int64)

    return reduce_all(tensors, add)
