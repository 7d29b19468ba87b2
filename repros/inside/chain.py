"""Exception chains as plain values."""

from __future__ import annotations

import traceback
from typing import Any

_LONGEST_MESSAGE = 20_000
_MOST_FRAMES = 60
_MOST_LINKS = 20


def exception_chain(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and the exceptions that led to it, outermost first, as plain values.

    Each link has `type`, `bases` (dotted names), `message`, `frames` (`file:line function`, innermost last) and `via`,
    how the link before it led here: `cause`, `context`, `group`, or None for the first. Errors that a
    hostile exception raises when it is read are passed on, except those of its `__str__`.
    """
    chain: list[dict[str, Any]] = []
    seen: set[int] = set()
    queue: list[tuple[BaseException, str | None]] = [(error, None)]
    while queue and len(chain) < _MOST_LINKS:
        error, via = queue.pop(0)
        if id(error) in seen:
            continue
        seen.add(id(error))
        chain.append(_describe_link(error, via))
        if error.__cause__ is not None:
            queue.append((error.__cause__, "cause"))
        # A suppressed context too: `raise ... from None` hides the root, it does not undo it.
        if error.__context__ is not None:
            queue.append((error.__context__, "context"))
        inner = getattr(error, "exceptions", None)
        if isinstance(inner, (tuple, list)):
            queue.extend((member, "group") for member in inner if isinstance(member, BaseException))
    return chain


def _describe_link(error: BaseException, via: str | None) -> dict[str, Any]:
    try:
        message = str(error)
    except BaseException as broken:  # a library's __str__ may fail
        message = f"<no message: its __str__ raised {type(broken).__name__}>"
    if len(message) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2
        message = message[:half] + " [...] " + message[-half:]
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    return {
        "type": _dotted_name(type(error)),
        "bases": [_dotted_name(base) for base in type(error).__mro__[1:-1]],
        "message": message,
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
        "via": via,
    }


def _dotted_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
