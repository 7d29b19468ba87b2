"""The results of a program's own calls other than those of modules, in their order.

A call counts if its caller is the program's own code: the calls of libraries differ between their releases. Of a result
the numbers are recorded, in tensors, arrays, lists and mappings; texts are not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from repros.diagnose.compare.inside.summary import summarise
from repros.diagnose.watch.inside.location import is_library
from repros.diagnose.watch.inside.observe.compiling import is_ours

if TYPE_CHECKING:
    from torch import Tensor

GATHERED, READ, COMPILED, DATA = "gathered", "read", "compiled", "data"
"""Kinds of results: of collectives, of tensors read as Python numbers, of compiled modules, and of data sets,
tokenizers and collators."""
_MOST = 2000
"""Results between two steps that are recorded; further ones are counted."""
_MOST_VALUES = 8
"""Tensors of one result that are recorded."""
_MOST_PLACES = 64
"""Items of a list that is not of numbers alone that are recorded."""
_DEEPEST = 4


class Results:
    """The results since the last step."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        """Create it empty.

        Args:
            is_over: returns whether recording has ended.
        """
        self._is_over = is_over
        self._is_busy = False
        """Whether a result is being read, by calls that return results themselves."""
        self._kept: list[dict[str, object]] = []
        self._counts: dict[str, int] = {}

    def take(self, kind: str, what: str, value: object, *, through: tuple[str, ...] = ()) -> None:
        """Record the result of the observed call that this is called in, if the program's own code makes it.

        Args:
            kind: one of this module's.
            what: the call, such as `all_gather()`.
            value: the result.
            through: as in `calling_function`.
        """
        caller = None if self._is_busy else calling_function(through)
        if caller is not None:
            self.keep(kind, what, caller, value)

    def keep(self, kind: str, what: str, caller: str, value: object) -> None:
        """Record a result of the main thread; the order of other threads is random.

        Args:
            kind: one of this module's.
            what: the call.
            caller: the calling function; "" for code outside of functions.
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
        """Return the results since the last call, and the number of each kind, and forget them."""
        results = {"results": self._kept, "counts": self._counts}
        self._kept, self._counts = [], {}
        return results


def calling_function(through: tuple[str, ...] = ()) -> str | None:
    """Return the function that makes the present observed call; None if it is not the program's own code.

    For code outside of functions it is "".

    Args:
        through: suffixes of the files of functions between the two, in addition to the watch's own.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    while frame is not None and (is_ours(frame.f_code.co_filename) or frame.f_code.co_filename.endswith(through)):
        frame = frame.f_back
    return None if frame is None or is_library(frame.f_code.co_filename) else name_of(frame)


def name_of(frame: FrameType | None) -> str:
    """Return the name of a frame's function, or of the function around its comprehension or lambda."""
    while frame is not None:
        name = frame.f_code.co_name
        if name == "<module>":
            return ""
        if not name.startswith("<") and not is_library(frame.f_code.co_filename):
            return name
        frame = frame.f_back
    return ""


def tensors_by_path(value: object) -> dict[str, Tensor]:
    """Return the first few tensors of numbers in a value, by path, such as `[labels]`."""
    by_path: dict[str, Tensor] = {}
    _add(by_path, "", value, 0)
    return by_path


def _add(by_path: dict[str, Tensor], path: str, value: object, depth: int) -> None:
    import torch

    if len(by_path) >= _MOST_VALUES or depth > _DEEPEST:
        return
    if isinstance(value, torch.Tensor):
        by_path[path] = value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _add(by_path, f"{path}[{key}]", item, depth + 1)
    elif isinstance(value, (list, tuple, bool, int, float)):
        numbers: list[float] = []
        if _flatten(value, numbers, 0):
            is_whole = all(isinstance(number, int) for number in numbers)
            by_path[path] = torch.tensor(numbers, dtype=torch.int64 if is_whole else torch.float64, device="cpu")
        elif isinstance(value, (list, tuple)):
            for place, item in enumerate(value[:_MOST_PLACES]):
                _add(by_path, f"{path}[{place}]", item, depth + 1)
    elif hasattr(value, "__array__") and getattr(getattr(value, "dtype", None), "kind", "") in set("biuf"):
        by_path[path] = torch.as_tensor(value, device="cpu")


def _flatten(value: object, into: list[float], depth: int) -> bool:
    """Append the numbers of nested lists; return whether the value has nothing but numbers."""
    if isinstance(value, (bool, int, float)):
        into.append(value)
        return True
    if not isinstance(value, (list, tuple)) or depth > _DEEPEST:
        return False
    return bool(value) and all(_flatten(item, into, depth + 1) for item in value)
