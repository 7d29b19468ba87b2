"""The forms of a call: forward, `out=`, in place, backward, and under autocast where CUDA's code is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .compare import difference
from .samples import DEVICE, DTYPES, HOST, NotDenseError, NotSupportedError, operators, place_sample, samples, seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

UNDEFINED = frozenset(
    [
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    ]
)
"""Operators whose results have arbitrary values."""


def forward(operator: Any, first: Any, others: list[Any], named: dict[str, Any]) -> Any:
    """Return the result."""
    return operator.op(first, *others, **named)


def out(operator: Any, first: Any, others: list[Any], named: dict[str, Any]) -> Any:
    """Return the result written to `out=` tensors of ones, which show elements that were not written."""
    seed()
    made = operator.op(first, *others, **named)
    targets = _ones_like(made)
    seed()
    returned = operator.op(first, *others, out=targets, **named)
    return [targets, returned]


def in_place(operator: Any, first: Any, others: list[Any], named: dict[str, Any]) -> Any:
    """Return the result, and the first argument, which was changed."""
    returned = operator.inplace_variant(first, *others, **named)
    return [returned, first]


def backward(operator: Any, first: Any, others: list[Any], named: dict[str, Any]) -> Any:
    """Return the gradients of all leaves."""
    result = operator.op(first, *others, **named)
    leaves = [tensor for tensor in _tensors([first, others, named]) if tensor.requires_grad and tensor.is_leaf]
    roots = [tensor for tensor in _tensors(result) if tensor.requires_grad]
    if not leaves or not roots:
        raise NotSupportedError
    seeds = [torch.ones_like(root) for root in roots]
    return torch.autograd.grad(roots, leaves, seeds, allow_unused=True)


def autocast(operator: Any, first: Any, others: list[Any], named: dict[str, Any]) -> Any:
    """Return the result under CUDA's autocast, which leaves tensors on the CPU as they are."""
    with torch.autocast("cuda", dtype=torch.float16):
        return operator.op(first, *others, **named)


FORMS = {"forward": forward, "out": out, "in place": in_place, "backward": backward}
"""The forms whose results on the CPU and on CUDA are alike."""
CUDA_FORMS = {**FORMS, "autocast": autocast}
"""All forms, for comparisons of CUDA with CUDA."""


def combinations(
    begin: int, end: int, after: Sequence[str] | None = None, chosen: Iterable[str] = FORMS
) -> Iterator[tuple[list[str], Any, torch.dtype]]:
    """Yield operator, variant, type and form by their names, with the operator and the type, of a range of operators.

    Args:
        begin: the number of the first operator.
        end: the number behind the last one.
        after: the names of the combination to go on behind, which ended an earlier process.
        chosen: names in `CUDA_FORMS`.
    """
    skipping, forms = after is not None, tuple(chosen)
    for operator in operators()[begin:end]:
        for name, dtype in DTYPES.items():
            for form in forms:
                combination = [operator.name, operator.variant_test_name, name, form]
                if skipping:
                    skipping = combination != after
                elif is_supported(operator, dtype, form):
                    yield combination, operator, dtype


def is_supported(operator: Any, dtype: torch.dtype, form: str) -> bool:
    """Return whether the operator has this form."""
    has = {
        "forward": True,
        "out": operator.supports_out,
        "in place": operator.inplace_variant is not None,
        "backward": operator.supports_autograd and dtype is torch.float32,
        "autocast": dtype is torch.float32,
    }
    on_both = all(operator.supports_dtype(dtype, place) for place in ("cpu", "cuda"))
    return bool(has[form] and on_both)


def run(
    operator: Any, dtype: torch.dtype, form: str, passed: Callable[[int], object] = lambda count: None
) -> Iterator[str | None]:
    """Call the operator with each of its samples; yield the difference, or None, for each that the CPU passes.

    Args:
        operator: an entry of `op_db`.
        dtype: the samples' type.
        form: a name in `FORMS`.
        passed: called with the number of samples that the CPU passes, before the device runs them.
    """
    call = FORMS[form]
    results = []
    for sample in list(samples(operator, dtype, requires_grad=form == "backward")):
        try:
            results.append((sample, call_on(call, operator, sample, HOST)))
        except Exception:  # noqa: S112 # samples that the CPU refuses are left out
            continue
    passed(len(results))
    for sample, here in results:
        try:
            there = call_on(call, operator, sample, DEVICE)
        except Exception as error:  # any error of the device is a difference
            yield f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            continue
        yield difference(here, there, values=operator.name not in UNDEFINED)


def call_on(call: Any, operator: Any, sample: Any, device: str) -> Any:
    """Return the result of a form's function for a copy of the sample on a device.

    Raises:
        NotDenseError: the sample or the result has a tensor that is not strided.
        NotSupportedError: the sample has nothing to place.
        Exception: the operator's own error.
    """
    arguments = place_sample(operator, sample, device)
    seed()
    result = call(operator, *arguments)
    for tensor in _tensors(result):
        if tensor.layout != torch.strided:
            raise NotDenseError(str(tensor.layout))
    return result


def _ones_like(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.ones_like(value)
    if isinstance(value, (list, tuple)):
        return tuple(_ones_like(item) for item in value)
    raise NotSupportedError


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
