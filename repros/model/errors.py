"""Base classes of the errors that a user can correct.

The command line prints the message and exits with code 2; the pytest plugin raises a usage error. A subclass exists
only if a caller catches it by type. Any other exception that reaches the user is a bug.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class ReprosError(Exception):
    """An error that the user can correct; its message is one sentence with the location and a remedy."""


_LONGEST_NAME = 100
"""Characters of a name that a message quotes."""


class UnknownNameError(ReprosError):
    """An unknown name; the message suggests the nearest known name, or lists all of them, or gives a remedy."""

    def __init__(self, kind: str, name: str, known: Iterable[str], remedy: str = "") -> None:
        import difflib  # noqa: PLC0415 - needed for errors only; imports delay every command

        known = list(known)
        name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        nearest = (
            [candidate for candidate in known if _simplified(candidate) == _simplified(name)]
            or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            or difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
        )
        hint = f"did you mean {nearest[0]!r}?" if nearest else remedy or f"known: {', '.join(known) or 'none'}."
        super().__init__(f"unknown {kind} {name!r}; {hint}")
        self.name = name


def refuse_unknown(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that are not known.

    Raises:
        UnknownNameError: for the first such name.
    """
    known = dict.fromkeys(known)
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def _simplified(name: str) -> str:
    """Return a name without case, separators and leading zeros: `RPR-005` means RPR-0005, not RPR-0015."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[-_. ]", "", name.lower()))
