"""The failures in a text, for tests."""

from __future__ import annotations

import textwrap

from repros.diagnose.match.failures import LogFailure
from repros.diagnose.match.find import find_failures


def failures(text: str) -> tuple[LogFailure, ...]:
    found, notes = find_failures(enumerate(textwrap.dedent(text).strip("\n").split("\n"), 1))
    assert notes == ()
    return found


def chains(text: str) -> list[list[tuple[str | None, int, str, str, list[str]]]]:
    """Return the chain of each failure: per link its relation to the previous one, line, class, message, functions."""
    return [
        [
            (
                link.raised.via,
                link.line,
                link.raised.type,
                link.raised.message,
                [f.split()[-1] for f in link.raised.frames],
            )
            for link in failure.links
        ]
        for failure in failures(text)
    ]
