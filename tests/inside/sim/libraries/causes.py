"""Why a library's test fails on sim, as somebody has found who looked into it. Every failure that is kept has one here.

A test keeps the list honest: each cause still has its failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Cause(NamedTuple):
    """Why tests fail."""

    library: str
    """Whose tests, by the name among `LIBRARIES`."""
    pattern: str
    """A regular expression for the test's name and what was said, with a colon between; the first that fits decides."""
    why: str
    """What is behind it, for readers."""


CAUSES: tuple[Cause, ...] = ()


def cause_of(library: str, test: str, said: str, causes: Iterable[Cause] = CAUSES) -> Cause | None:
    """The first cause that fits a failure; nothing where nobody has looked into it."""
    fits = (cause for cause in causes if cause.library == library and re.search(cause.pattern, f"{test}: {said}"))
    return next(fits, None)
