"""Patching one attribute of a class or module so that the original runs unchanged between two observations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from repros.diagnose.watch.inside.observe.compiling import uncounted, unseen

Args = tuple[Any, ...]
"""The positional arguments of an observed call; of a method, the object is the first."""
Kwargs = dict[str, Any]
"""The keyword arguments of an observed call."""
Observer = Callable[..., Any]
"""What is called before or after an observed call."""


def around(
    owner: object,
    name: str,
    *,
    before: Observer | None = None,
    after: Observer | None = None,
    returned: Observer | None = None,
) -> None:
    """Call `before(args, kwargs)`, `after(args, kwargs, what before returned)` and `returned(args, kwargs, result)`.

    The last two are called only if the original returns. Observers must not raise: they go through `Watch.notify`. What
    a compiler traces is not observed.
    """
    original = getattr(owner, name)
    before, after, returned = (callback and unseen(callback) for callback in (before, after, returned))

    @uncounted
    @functools.wraps(original)
    def observed(*args: Any, **kwargs: Any) -> Any:
        memo = before(args, kwargs) if before is not None else None
        result = original(*args, **kwargs)
        if after is not None:
            after(args, kwargs, memo)
        if returned is not None:
            returned(args, kwargs, result)
        return result

    setattr(owner, name, observed)
