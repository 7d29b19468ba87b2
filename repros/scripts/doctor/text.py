"""The examination of the sandbox, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from repros.scripts.doctor.examination import TRIED, AttemptResult, Examination
from repros.scripts.try_.text import format_open
from repros.text.styled import Text
from repros.text.wording import count, wrap

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""
_WORDS = {True: "stands", False: "open", None: "not tried"}
_STYLES = {True: "green", False: "bold red", None: "yellow"}


def format_examination(examination: Examination, width: int) -> Iterator[Text]:
    """Yield the lines of an examination: what makes the sandbox, each attempt, and how many succeeded."""
    for line in wrap(_describe_ways(examination), width):
        yield Text(line)
    for attempt in examination.attempts:
        yield Text(f"{_WORDS[attempt.stands]:<10}{_describe(attempt)}", _STYLES[attempt.stands])
    tried = [attempt for attempt in examination.attempts if attempt.stands is not None]
    opened = examination.open
    if examination.sandbox.problems:
        for line in wrap(format_open(examination.sandbox), width):
            yield Text(line, "yellow")
    yield Text(f"{count(len(tried), 'attempt')}, {len(opened) or 'none'} of them successful.")


def examination_to_json(examination: Examination) -> dict[str, Any]:
    """Return an examination as an object for JSON."""
    return {
        "schema": SCHEMA,
        "walls": asdict(examination.sandbox),
        "cgroup": examination.has_cgroup,
        "attempts": [
            {"name": one.name, "tried": TRIED[one.name], "stands": one.stands, "answer": one.answer}
            for one in examination.attempts
        ],
    }


def _describe(attempt: AttemptResult) -> str:
    return f"{TRIED[attempt.name]}: {attempt.answer}"


def _describe_ways(examination: Examination) -> str:
    sandbox = examination.sandbox
    made = f"by bubblewrap ({sandbox.bubblewrap})" if sandbox.bubblewrap else "by calls of the kernel"
    spaces = ("network", "system", "processes")
    ways = [f"namespaces {made}" if all(getattr(sandbox, name) for name in spaces) else "not all namespaces"]
    ways += ["Landlock" if sandbox.files else "no Landlock", "seccomp" if sandbox.calls else "no seccomp"]
    ways += ["a cgroup" if examination.has_cgroup else "no cgroup, so --memory is watched instead"]
    forks = "" if sandbox.can_fork else " Candidates of repros reduce start cold."
    return f"The sandbox of this machine for this user: {', '.join(ways)}.{forks}"
