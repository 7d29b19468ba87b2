"""Comparison of a result on the device with one on the reference."""

from __future__ import annotations

from typing import Any

import torch


def difference(here: Any, there: Any, *, values: bool = True) -> str | None:
    """Return the first difference between two results, or None.

    Args:
        here: the result on the reference.
        there: the result on the device.
        values: whether to compare the values; those of `empty` are arbitrary.
    """
    if isinstance(here, torch.Tensor):
        return _tensor_difference(here, there, values=values)
    if isinstance(here, (list, tuple)):
        if not isinstance(there, (list, tuple)) or len(here) != len(there):
            return f"{_short_repr(there)} instead of {_short_repr(here)}"
        found = (difference(a, b, values=values) for a, b in zip(here, there))  # from Python 3.10
        return next(filter(None, found), None)
    if isinstance(here, torch.device):
        return None if there.type == "cuda" else f"device {there}"
    if not values:
        return None if type(here) is type(there) else f"{_short_repr(there)} instead of {_short_repr(here)}"
    same = here == there or (here != here and there != there)  # noqa: PLR0124 # a NaN
    return None if same else f"{_short_repr(there)} instead of {_short_repr(here)}"


def _tensor_difference(here: torch.Tensor, there: Any, *, values: bool) -> str | None:
    if not isinstance(there, torch.Tensor):
        return f"{_short_repr(there)} instead of a tensor"
    if there.device != torch.device("cuda", 0):
        return f"is on {there.device}"
    for name in ("dtype", "shape", "requires_grad", "is_conj", "is_neg"):
        a, b = getattr(here, name), getattr(there, name)
        a, b = (a(), b()) if callable(a) else (a, b)
        if a != b:
            return f"{name} {b} instead of {a}"
    if here.layout == torch.strided and here.stride() != there.stride():
        return f"strides {there.stride()} instead of {here.stride()}"
    if not values:
        return None
    a, b = here.detach().resolve_conj().resolve_neg(), there.detach().cpu().resolve_conj().resolve_neg()
    try:
        torch.testing.assert_close(b, a, rtol=0, atol=0, equal_nan=True)
    except AssertionError as error:
        return "values: " + " ".join(str(error).split())[:200]
    return None


def _short_repr(value: Any) -> str:
    return repr(value)[:80]
