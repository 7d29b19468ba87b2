"""The ranges of tensors, which show what is not finite: one pass over each, read from accelerators in one transfer."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.values import is_capturing, is_plain

if TYPE_CHECKING:
    from torch import Tensor, device

NAN, INF, MINUS_INF = 1, 2, 4
_WORDS = ((NAN, "NaN"), (INF, "inf"), (MINUS_INF, "-inf"))

_MOST_TENSORS = 64
_DEEPEST = 4
_MOST_KNOWN = 10_000


class Range:
    """The least and the greatest value of a tensor; both are NaN if one of its values is."""

    __slots__ = ("dtype", "high", "is_computed", "is_read", "kinds", "low", "origin", "size")

    def __init__(self, tensor: Tensor) -> None:
        self.low, self.high, self.kinds, self.is_read = math.nan, math.nan, 0, False
        self.dtype = str(tensor.dtype).rpartition(".")[2]
        self.size = int(tensor.numel())
        self.is_computed = tensor.grad_fn is not None
        """Whether it has a graph, as no loaded data has."""
        self.origin: Any = None
        """The `calls.Suspect` that these values come from; None for finite ones."""

    def set(self, low: float, high: float) -> None:
        """Set both values."""
        self.low, self.high, self.is_read = low, high, True
        if low != low or high != high:  # noqa: PLR0124 - NaN
            self.kinds = NAN
        else:
            self.kinds = (INF if math.inf in {low, high} else 0) | (MINUS_INF if -math.inf in {low, high} else 0)

    def __str__(self) -> str:
        return f"from {self.low:.4g} to {self.high:.4g} ({self.dtype})"


def words_of(kinds: int) -> str:
    """Return `NaN`, `inf`, `-inf`, or several of them."""
    return " and ".join(word for kind, word in _WORDS if kinds & kind)


def count_not_finite(tensor: Tensor) -> int:
    """Return how many values of a tensor are not finite."""
    import torch

    with torch.no_grad():
        return int(tensor.numel() - tensor.isfinite().sum())


def tensors_in(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Yield the floating tensors in tuples, lists and dicts, each with its path such as `[1]` or `['mask']`."""
    tensor = _readable(value)
    if tensor is not None:
        yield path, tensor
    elif depth < _DEEPEST:
        if isinstance(value, dict):
            for key, part in [*value.items()][:_MOST_TENSORS]:
                yield from tensors_in(part, f"{path}[{key!r}]", depth + 1)
        elif isinstance(value, (list, tuple)):
            for place, part in enumerate(value[:_MOST_TENSORS]):
                yield from tensors_in(part, f"{path}[{place}]", depth + 1)


def _readable(value: object) -> Tensor | None:
    """Return a tensor whose values are floating and can be read here, this rank's part of a DTensor; else None."""
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    local = getattr(value, "_local_tensor", value)  # a DTensor's: to read the whole would be a collective
    return local if is_plain(local) and local.is_floating_point() and local.element_size() > 1 else None


def can_read() -> bool:
    """Return whether operators run unobserved now: by no tracer, functional transform, mode or CUDA graph capture."""
    torch = sys.modules["torch"]
    c = torch._C
    if c._get_tracing_state() is not None or c._len_torch_dispatch_stack() > 0:
        return False
    functorch = getattr(c, "_functorch", None)
    peek = getattr(functorch, "peek_interpreter_stack", None)
    if peek is not None and peek() is not None:
        return False
    return not is_capturing()


class Ranges:
    """The ranges of the tensors of this step, each computed once while nothing writes to it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], int, Range]] = {}
        self._unread: list[tuple[Range, tuple[Tensor, Tensor]]] = []

    def of(self, tensor: Tensor) -> Range:
        """Return a tensor's range; that of an accelerator's tensor is read later, by :meth:`read`."""
        version = 0 if tensor.is_inference() else tensor._version
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            return known[2]
        if len(self._known) > _MOST_KNOWN:  # a long evaluation, without a step
            self._known.clear()
        value_range = Range(tensor)
        both = _extremes(tensor)
        if tensor.device.type == "cpu":
            value_range.set(float(both[0]), float(both[1]))
        else:
            self._unread.append((value_range, both))
        self._known[id(tensor)] = (weakref.ref(tensor), version, value_range)
        return value_range

    def read(self) -> None:
        """Read what the accelerators have computed, in one transfer for each device."""
        unread, self._unread = self._unread, []
        import torch

        by_device: dict[device, list[tuple[Range, tuple[Tensor, Tensor]]]] = {}
        for value_range, both in unread:
            by_device.setdefault(both[0].device, []).append((value_range, both))
        for pairs in by_device.values():
            values = torch.stack([value.double() for _, both in pairs for value in both]).tolist()
            for (value_range, _), low, high in zip(pairs, values[::2], values[1::2]):
                value_range.set(low, high)

    def forget(self) -> None:
        """Forget the tensors of the last step."""
        self._known.clear()


def _extremes(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the greatest value, each of shape ()."""
    import torch

    with torch.no_grad():
        try:
            return torch.aminmax(tensor)
        except RuntimeError:  # half precision on the CPU, in early releases
            return torch.aminmax(tensor.float())
