"""The values of tensors: which can be read, and reductions that are copied to the host in one transfer."""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Known = dict[int, tuple[float, float]]
"""The norm and the sum of tensors, by `id`, while nothing writes to them."""

_PART = 1 << 18
"""Elements that fit into a processor's cache."""
_SAMPLE = 256


def stable_digest(*values: object) -> str:
    """Return a short digest of numbers, texts and lists of them, which is the same in every process.

    Not `hash`, which differs between processes for texts and, since Python 3.10, between two NaNs.
    """
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def is_capturing() -> bool:
    """Return whether the current stream records a CUDA graph, in which no value may be read."""
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor's values can be read here: a DTensor's would be a collective, a meta tensor has none."""
    torch = sys.modules["torch"]  # called for each parameter: an `import` would take too long
    kind = type(tensor)
    is_own = kind is torch.nn.Parameter or kind is torch.Tensor
    return is_own and tensor.layout is torch.strided and not tensor.is_meta and tensor.numel() > 0


def address_of(tensor: Tensor) -> int | None:
    """Return the address of a tensor's values; None for a functional transform's, which has no memory of its own."""
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return None


def reduce_all(tensors: list[Tensor], reduction: Callable[[Tensor], Tensor]) -> list[Any]:
    """Return a number for each tensor, in one transfer.

    Args:
        tensors: of any shapes and devices.
        reduction: returns a tensor of shape (), of one dtype for all.
    """
    import torch

    with torch.no_grad():
        return to_host([reduction(tensor.detach()) for tensor in tensors])


def norms_of(tensors: list[Tensor], known: Known) -> list[float]:
    """Return the norms of floating tensors, in one transfer.

    Args:
        tensors: of any shapes and devices.
        known: the norms and sums of tensors that nothing has written to since.
    """
    missing = [tensor for tensor in tensors if id(tensor) not in known]
    norms = dict(zip(map(id, missing), to_host(_norms(missing))))
    return [known[id(tensor)][0] if id(tensor) in known else norms[id(tensor)] for tensor in tensors]


def norms_and_sums(tensors: list[Tensor], known: Known) -> tuple[list[float], list[float]]:
    """Return the norms of floating tensors, and their sums, in one transfer; note them in `known`."""
    missing = [tensor for tensor in tensors if id(tensor) not in known]
    large = [tensor for tensor in missing if _is_large(tensor)]
    small = [tensor for tensor in missing if not _is_large(tensor)] if large else missing
    numbers = to_host([*_norms(small), *_sums(small), *(number for tensor in large for number in _in_parts(tensor))])
    known.update(zip(map(id, small), zip(numbers, numbers[len(small) :])))
    known.update(zip(map(id, large), zip(numbers[2 * len(small) :: 2], numbers[2 * len(small) + 1 :: 2])))
    return [known[id(tensor)][0] for tensor in tensors], [known[id(tensor)][1] for tensor in tensors]


def digest(tensors: dict[str, Tensor | None], known: Known) -> dict[str, list[Any]]:
    """Return the `names`, `norms` and `sums` of those that are dense and floating, of any shapes.

    Args:
        tensors: by name; None is left out.
        known: the cache of `Watch.known`.
    """
    import torch

    usable = {
        name: tensor
        for name, tensor in tensors.items()
        if tensor is not None and tensor.layout is torch.strided and tensor.is_floating_point() and tensor.numel()
    }
    if not usable:
        return {"names": [], "norms": [], "sums": []}
    norms, sums = norms_and_sums(list(usable.values()), known)
    return {"names": list(usable), "norms": norms, "sums": sums}


def _is_large(tensor: Tensor) -> bool:
    return bool(tensor.numel() > 2 * _PART) and tensor.device.type == "cpu" and bool(tensor.is_contiguous())


def _sums(tensors: list[Tensor]) -> list[Tensor]:
    import torch

    with torch.no_grad():
        return [tensor.sum(dtype=torch.float32) for tensor in tensors]


def _in_parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return norm and sum, of shape (), of a tensor larger than the cache, part by part: each is read twice from it."""
    import torch

    with torch.no_grad():
        parts = tensor.detach().view(-1).split(_PART)
        both = [(_norm(part), part.sum(dtype=torch.float32)) for part in parts]
        norms, sums = (torch.stack(numbers) for numbers in zip(*both))
        return torch.linalg.vector_norm(norms), sums.sum()


class Digested:
    """The norms and sums of tensors, with which to recognise later those that nothing has written to since.

    A write through `.data` leaves a tensor's version as it is, so a sample of its elements is compared as well.
    """

    def __init__(self, tensors: list[Tensor], known: Known) -> None:
        """Keep the numbers of those tensors so large that comparing a sample costs much less than another digest."""
        self._kept = [
            (weakref.ref(tensor), tensor._version, _sample_of(tensor), known[id(tensor)])
            for tensor in tensors
            if _is_large(tensor) and id(tensor) in known
        ]

    def still_known(self) -> Known:
        """Return the numbers of the unchanged tensors."""
        import torch

        present = [(reference(), *kept) for reference, *kept in self._kept]
        return {
            id(tensor): numbers
            for tensor, version, sample, numbers in present
            if tensor is not None and tensor._version == version and _is_large(tensor)
            if torch.equal(sample, _sample_of(tensor))
        }


def _sample_of(tensor: Tensor) -> Tensor:
    """Return a copy of evenly spaced elements of a contiguous tensor, of shape (n,)."""
    return tensor.detach().view(-1)[:: tensor.numel() // _SAMPLE].clone()


def _norms(tensors: list[Tensor]) -> list[Tensor]:
    import torch

    if not tensors:
        return []
    with torch.no_grad():
        kinds = {(tensor.dtype, tensor.device) for tensor in tensors}
        if len(kinds) == 1 and tensors[0].dtype == torch.float32 and tensors[0].device.type in {"cpu", "cuda"}:
            return list(torch._foreach_norm(tensors))  # one call for all; it gives norms in the tensors' own dtype
        return [_norm(tensor) for tensor in tensors]


def _norm(tensor: Tensor) -> Tensor:
    """Return the norm in float32; torch refuses to compute one in a narrower dtype, so that of float64 is rounded."""
    import torch

    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return torch.linalg.vector_norm(tensor, dtype=wide).float()


def to_host(values: list[Tensor]) -> list[Any]:
    """Return the numbers of tensors of shape () and of one dtype, in one transfer."""
    import torch

    if not values:
        return []
    device = values[0].device
    with torch.no_grad():
        numbers: list[Any] = torch.stack(
            [value if value.device == device else value.to(device) for value in values]
        ).tolist()
    return numbers


def find_not_finite(tensors: list[Tensor], known: Known) -> list[Tensor]:
    """Return those of the floating tensors that have an infinite element or NaN.

    Args:
        tensors: of any shapes and devices.
        known: the norms and sums of tensors that nothing has written to since.
    """
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    # A norm needs no memory; that of large elements may itself be infinite.
    suspects = [tensor for tensor, norm in zip(floating, norms_of(floating, known)) if norm - norm != 0]
    return [tensor for tensor in suspects if not bool(tensor.detach().isfinite().all())]


def bit_sums(tensors: list[Tensor]) -> list[int]:
    """Return a checksum of each tensor's bits, which changes with the last bit of one element."""
    import torch

    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}

    def add(tensor: Tensor) -> Tensor:
        real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        return real.view(kinds[real.element_size()]).sum(dtype=torch.int64)

    return reduce_all(tensors, add)
