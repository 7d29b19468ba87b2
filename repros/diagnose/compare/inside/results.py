"""What a program gets from calls that it makes itself and that are no module's, in their order.

A call counts whose caller is the program's own code: what libraries read and send to one another differs between their
releases. Of each result the numbers are kept: those of tensors, arrays, lists and mappings; texts are not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from repros.diagnose.compare.inside.summary import summarise
from repros.diagnose.watch.inside.observe.frames import is_ours
from repros.diagnose.watch.inside.place import is_library

if TYPE_CHECKING:
    from torch import Tensor

GATHERED, READ, COMPILED, DATA = "gathered", "read", "compiled", "data"
"""Kinds of results: what ranks exchange, a tensor that becomes Python's numbers, what a compiled module returns, and
what data sets, tokenizers and collators return."""
_MOST = 2000
"""Results between two steps that are kept; further ones are counted."""
_MOST_VALUES = 8
"""Tensors of one result."""
_MOST_PLACES = 64
"""Places of a list with other things than numbers that are looked at."""
_DEEPEST = 4


class Results:
    """Those since the last step."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        """Begin without any.

        Args:
            is_over: says whether nothing is recorded any longer.
        """
        self._is_over = is_over
        self._is_busy = False
        """Whether a result is being read, by calls that give results themselves."""
        self._kept: list[dict[str, object]] = []
        self._counts: dict[str, int] = {}

    def take(self, kind: str, what: str, value: object, *, through: tuple[str, ...] = ()) -> None:
        """Take the result of the observed call that this is called in, if the program's own code makes it.

        Args:
            kind: one of this module's.
            what: what gave it, such as `all_gather()`.
            value: the result.
            through: as in `calling_function`.
        """
        caller = None if self._is_busy else calling_function(through)
        if caller is not None:
            self.keep(kind, what, caller, value)

    def keep(self, kind: str, what: str, caller: str, value: object) -> None:
        """Keep a result, of the main thread alone: the order of threads is that of chance.

        Args:
            kind: one of this module's.
            what: what gave it.
            caller: the function that called that; an empty text for code outside of functions.
            value: the result.
        """
        if self._is_over() or threading.current_thread() is not threading.main_thread():
            return
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if len(self._kept) >= _MOST:
            return
        self._is_busy = True
        try:
            values = {path: summarise(tensor) for path, tensor in tensors_by_path(value).items()}
        except Exception:  # numbers that no tensor can hold
            values = {}
        finally:
            self._is_busy = False
        self._kept.append({"kind": kind, "what": what, "in": caller, "values": values})

    def as_json(self) -> dict[str, Any]:
        """Return those since the last time, and how many of each kind there were; and forget them."""
        found = {"results": self._kept, "counts": self._counts}
        self._kept, self._counts = [], {}
        return found


def calling_function(through: tuple[str, ...] = ()) -> str | None:
    """Return the function that makes the observed call which is under way; None where that is no code of the program's.

    For code outside of functions an empty text.

    Args:
        through: ends of the names of files whose functions lie between, beside those that the watch has put there.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    while frame is not None and (is_ours(frame.f_code.co_filename) or frame.f_code.co_filename.endswith(through)):
        frame = frame.f_back
    return None if frame is None or is_library(frame.f_code.co_filename) else name_of(frame)


def name_of(frame: FrameType | None) -> str:
    """Return the name of the function that a frame is of, or that its comprehension or lambda is in."""
    while frame is not None:
        name = frame.f_code.co_name
        if name == "<module>":
            return ""
        if not name.startswith("<") and not is_library(frame.f_code.co_filename):
            return name
        frame = frame.f_back
    return ""


def tensors_by_path(value: object) -> dict[str, Tensor]:
    """Return the numbers of a value as tensors, each by its place in it, such as `[labels]`; the first few."""
    found: dict[str, Tensor] = {}
    _add(found, "", value, 0)
    return found


def _add(found: dict[str, Tensor], path: str, value: object, depth: int) -> None:
    import torch

    if len(found) >= _MOST_VALUES or depth > _DEEPEST:
        return
    if isinstance(value, torch.Tensor):
        found[path] = value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _add(found, f"{path}[{key}]", each, depth + 1)
    elif isinstance(value, (list, tuple, bool, int, float)):
        numbers: list[float] = []
        if _flatten(value, numbers, 0):
            is_whole = all(isinstance(each, int) for each in numbers)
            found[path] = torch.tensor(numbers, dtype=torch.int64 if is_whole else torch.float64, device="cpu")
        elif isinstance(value, (list, tuple)):
            for place, each in enumerate(value[:_MOST_PLACES]):
                _add(found, f"{path}[{place}]", each, depth + 1)
    elif hasattr(value, "__array__") and getattr(getattr(value, "dtype", None), "kind", "") in set("biuf"):
        found[path] = torch.as_tensor(value, device="cpu")


def _flatten(value: object, into: list[float], depth: int) -> bool:
    """Append the numbers of a value, list by list; return whether there is nothing else in it."""
    if isinstance(value, (bool, int, float)):
        into.append(value)
        return True
    if not isinstance(value, (list, tuple)) or depth > _DEEPEST:
        return False
    return bool(value) and all(_flatten(item, into, depth + 1) for item in value)
