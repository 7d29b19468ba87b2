"""The arguments of a module's call, for a listener of `calling`.

torch's global hooks before a forward get the positional arguments alone, and a hook of each module would be pickled and
copied with it. So the frame of `Module._call_impl`, which calls the hooks, is read: it has both.
"""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

_DEEPEST = 12
"""Frames between a listener and the call of the module."""


def arguments_of(module: Module) -> dict[str, Any]:
    """Return the arguments of the call that the present hook was called for, by name; {} if they are unknown."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code.co_name in {"_call_impl", "inner"}:
            found = frame.f_locals
            if found.get("self") is module and isinstance(found.get("kwargs"), dict):
                kind: Any = type(module)
                names = inspect.unwrap(kind.forward).__code__.co_varnames[1:]
                return {**dict(zip(names, found.get("args", ()))), **found["kwargs"]}
    return {}
