"""Calls with PyTorch's samples whose tensors all have elements: a kernel may return before it asks for the type."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten

from repros.simulated_gpus.tools.conformance.samples import DEVICE, NotDenseError, NotSupportedError, place_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DENIED = {"float16": torch.float16, "bfloat16": torch.bfloat16, "int64": torch.int64, "bool": torch.bool}
"""The types of the question what the list denies CUDA."""
_SAMPLES = 3


def full_name(operator: Any) -> str:
    """Return the name of an entry of `op_db`, followed by a dot and its variant if it has one."""
    return ".".join(filter(None, [operator.name, operator.variant_test_name]))


def have_elements(*values: Any) -> bool:
    """Return whether each tensor in nested values has an element."""
    return all(value.numel() for value in tree_flatten(list(values))[0] if isinstance(value, torch.Tensor))


def calls(operator: Any, dtype: torch.dtype) -> Iterator[Callable[[], Any]]:
    """Yield calls on the device with the operator's first samples of a type that have elements; none without samples.

    Args:
        operator: an entry of `op_db`.
        dtype: the samples' element type.
    """
    found = _placed(operator, dtype)
    for first, others, named in itertools.islice(found, _SAMPLES):
        yield lambda: operator.op(first, *others, **named)  # noqa: B023 # called before the next


def _placed(operator: Any, dtype: torch.dtype) -> Iterator[tuple[Any, list[Any], dict[str, Any]]]:
    try:
        for sample in operator.sample_inputs("cpu", dtype, requires_grad=False):
            try:
                placed = place_sample(operator, sample, DEVICE)
            except (NotDenseError, NotSupportedError):
                continue
            if have_elements(*placed):
                yield placed
    except Exception:  # there are no samples of this type
        return
