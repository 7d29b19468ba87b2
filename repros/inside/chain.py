"""Exception chains as JSON-serialisable values."""

from __future__ import annotations

import traceback
from typing import Any

_MAX_MESSAGE = 20_000
"""Characters."""
_MAX_FRAMES = 60
_MAX_EXCEPTIONS = 20


def exception_chain(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception with its causes, contexts and group members, outermost first.

    Each entry has `type`, `bases` (dotted names), `message`, `frames` (`file:line function`, innermost last) and `via`:
    how the previous exception refers to it (`cause`, `context`, `group`), or None for the first. Errors that a hostile
    exception raises while its attributes are read propagate, except those of its `__str__`.
    """
    chain: list[dict[str, Any]] = []
    visited: set[int] = set()
    queue: list[tuple[BaseException, str | None]] = [(error, None)]
    while queue and len(chain) < _MAX_EXCEPTIONS:
        error, via = queue.pop(0)
        if id(error) in visited:
            continue
        visited.add(id(error))
        chain.append(_describe(error, via))
        if error.__cause__ is not None:
            queue.append((error.__cause__, "cause"))
        # Including a suppressed context: `raise ... from None` only hides the root cause from the traceback.
        if error.__context__ is not None:
            queue.append((error.__context__, "context"))
        inner = getattr(error, "exceptions", None)
        if isinstance(inner, (tuple, list)):
            queue.extend((error, "group") for error in inner if isinstance(error, BaseException))
    return chain


def _describe(error: BaseException, via: str | None) -> dict[str, Any]:
    try:
        message = str(error)
    except BaseException as broken:  # a library's __str__ may raise
        message = f"<no message: its __str__ raised {type(broken).__name__}>"
    if len(message) > _MAX_MESSAGE:
        half = _MAX_MESSAGE // 2
        message = message[:half] + " [...] " + message[-half:]
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    return {
        "type": _dotted_name(type(error)),
        "bases": [_dotted_name(base) for base in type(error).__mro__[1:-1]],
        "message": message,
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
        "via": via,
    }


def _dotted_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
