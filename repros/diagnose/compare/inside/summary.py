"""Summaries of tensors: enough numbers to decide whether two are equal, bit for bit or nearly, and to join parts.

A summary has the sum, the sum of absolute values, the smallest and the largest element, and two sums weighted by the
cosine and the sine of an element's index, all in double precision. The weighted sums differ when elements are permuted,
and those of a whole tensor follow from those of its parts in order, of any lengths.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Summary = dict[str, Any]
"""The numbers of a tensor, as `summarise` returns them."""

ANGLE = 1.0
"""Radians between the weights of neighbouring elements: no multiple of it is a full turn."""
MOST_ROWS = 4096
"""Rows of a batch that are identified one by one."""

_PART = 1 << 20
_DIGEST = 8
_tables: dict[int, tuple[Tensor, Tensor]] = {}


def summarise(tensor: Tensor) -> Summary:
    """Return the summary of a tensor of any shape, dtype and device; `unread` has the reason without one.

    The result has `shape`, `dtype`, `hash` (of the bytes), `sum`, `abs`, `min`, `max`, `cos`, `sin`, and for the local
    part of a tensor that several ranks hold `part`.
    """
    import torch

    try:
        with torch.no_grad():
            local, is_part = _local(tensor.detach())
            values = _on_host(local)
            summary: dict[str, object] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).rpartition(".")[2]}
            summary.update({"hash": _hash([values]), **_numbers(values)})
            if is_part:
                summary["part"] = list(local.shape)
            return summary
    except Exception as error:  # a meta tensor, a functorch wrapper
        return {"unread": f"{type(error).__name__}: {error}"[:200]}


def rows_of(tensors: list[Tensor]) -> dict[str, object] | None:
    """Return the identity of the rows of a batch: for each the hash of its bytes, and three of a summary's numbers.

    Args:
        tensors: of shape (batch, ...); those with as many rows as the first one are read together.
    """
    import torch

    tensors = [tensor for tensor in tensors if tensor.dim() > 0 and tensor.shape[0] > 0]
    if not tensors:
        return None
    with torch.no_grad():
        parts = [_on_host(_local(one.detach())[0]) for one in tensors if one.shape[0] == tensors[0].shape[0]]
        number = parts[0].shape[0]
        read = min(number, MOST_ROWS)
        flat = [part[:read].reshape(read, -1) for part in parts]
        numbers = sum(_row_numbers(part) for part in flat).tolist()
        rows = [[_hash([part[row] for part in flat]), *numbers[row]] for row in range(read)]
        shapes = [[str(part.dtype).rpartition(".")[2], *part.shape[1:]] for part in parts]
        return {"number": number, "shapes": shapes, "rows": rows}


def _local(tensor: Tensor) -> tuple[Tensor, bool]:
    """Return this rank's local part of a tensor, and whether it is less than the whole."""
    if not hasattr(tensor, "to_local"):
        return tensor, False
    return tensor.to_local(), any(not placement.is_replicate() for placement in tensor.placements)


def _on_host(tensor: Tensor) -> Tensor:
    if tensor.is_sparse or str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.cpu().contiguous()


def _hash(tensors: list[Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        place = tensor.data_ptr()
        if size and not place:
            raise ValueError("no memory")  # a compiler's fake tensor, up to torch 2.4
        if size:
            digest.update((ctypes.c_char * size).from_address(place))
    return digest.hexdigest()


def _as_double(tensor: Tensor) -> Tensor:
    import torch

    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return real.reshape(-1).to(torch.float64)


def _numbers(tensor: Tensor) -> dict[str, float]:
    totals = {"sum": 0.0, "abs": 0.0, "min": math.inf, "max": -math.inf, "cos": 0.0, "sin": 0.0}
    if tensor.numel() == 0:
        return dict.fromkeys(totals, 0.0)
    flat = tensor.reshape(-1)
    for start in range(0, flat.numel(), _PART):
        part = _as_double(flat[start : start + _PART])
        cosine, sine = _weighted(part)
        low, high = part.aminmax()
        totals["sum"] += float(part.sum())
        totals["abs"] += float(part.abs().sum())
        totals["min"], totals["max"] = min(totals["min"], float(low)), max(totals["max"], float(high))
        turned = math.cos(start * ANGLE), math.sin(start * ANGLE)
        totals["cos"] += cosine * turned[0] - sine * turned[1]
        totals["sin"] += cosine * turned[1] + sine * turned[0]
    return totals


def _weighted(part: Module) -> tuple[float, float]:
    cosines, sines = _table(part.numel())
    return float(part @ cosines), float(part @ sines)


def _table(size: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of the first indices, of shape (size,), from a table of the largest size so far."""
    import torch

    if _tables.get(0) is None or _tables[0][0].numel() < size:
        angles = torch.arange(max(size, 1024), dtype=torch.float64, device="cpu") * ANGLE
        _tables[0] = (angles.cos(), angles.sin())
    cosines, sines = _tables[0]
    return cosines[:size], sines[:size]


def _row_numbers(flat: Tensor) -> Tensor:
    """Return by row, of shape (rows, 3): the sum, the sum of absolute values and the sum weighted by cosines."""
    import torch

    rows = (torch.view_as_real(flat).flatten(1) if flat.is_complex() else flat).to(torch.float64)
    cosines, _ = _table(rows.shape[1])
    return torch.stack([rows.sum(1), rows.abs().sum(1), rows @ cosines], dim=1)
