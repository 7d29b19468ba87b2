"""The causes that a report leaves, each with what the check shows for it, and those that it excludes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from repros.diagnose.issue.facts import HasFact, Weighed, fact_for_left_alone
from repros.diagnose.messages.family import Cause
from repros.scripts.triage.answer import Section

_ASIDE = re.compile(r" ?\([^()]*\)")
_MOST_EXCLUDED = 2
_NONE_LEFT = {
    "hang": "the call in which each process waits (py-spy dump --pid of every one)",
    "memory": "the calls that hold the most memory (torch.cuda.memory._record_memory_history, then _dump_snapshot)",
    "": "the first wrong value and its place",
}
"""What decides where no cause is left, by the begin of a symptom's name."""
_MOST_CAUSES = 3
_WIDTH = 88
"""Characters of a cause on a line."""
_FEWEST_WORDS = 4
"""Words that say what a cause is, in front of a colon."""


def cause_sections(weighed: Weighed, has: HasFact, *, is_shown: bool) -> Iterator[Section]:
    """Yield the causes that a report leaves, each with what the check prints for it.

    Args:
        weighed: the causes.
        has: says whether the report states a fact.
        is_shown: whether the check is the one of which the causes name the result.
    """
    label = "likely" if fact_for_left_alone(weighed, has) else "possible"
    is_apart = is_shown and len(weighed.possible) > 1
    room = _WIDTH * (2 if len(weighed.possible) >= _MOST_CAUSES else 3)
    for cause in weighed.possible[:_MOST_CAUSES]:
        text = _short_cause(cause, room) if is_apart and cause.shows else f"{cause.text}: {cause.fix}"
        yield Section(label, (text,), most_lines=4, is_whole=True)


def _short_cause(cause: Cause, room: int) -> str:
    """Return what a check prints for a cause, and as much of the cause and its fix as fits in some characters."""
    head = _head(cause)
    shown = f"if {cause.shows}: "
    text = cause.text if len(shown) + len(cause.text) <= room * 2 // 3 else head
    parts = cause.fix.partition("; ")[0].split(", ")
    fixes = [", ".join(parts[:number]) for number in range(len(parts), 0, -1)]
    whole = [fix for fix in fixes if fix.count("(") == fix.count(")") and fix.count("{") == fix.count("}")]
    fitting = (fix for fix in whole if len(shown) + len(text) + len(fix) <= room)
    return f"{shown}{text}: {next(fitting, whole[-1] if whole else cause.fix)}"


def _head(cause: Cause) -> str:
    """Return what a cause is, without its examples."""
    head, _, tail = cause.text.partition(": ")
    return f"{head}: {re.split(r' [(]|, ', tail)[0]}" if tail and len(head.split()) < _FEWEST_WORDS else head


def excluded_section(weighed: Weighed, symptom: str = "") -> Iterator[Section]:
    """Yield the causes that the report itself excludes, with what it states against them.

    Args:
        weighed: the causes.
        symptom: the symptom's name; empty for those of a message.
    """
    causes = {says: _ASIDE.sub("", _head(cause)) for cause, says in reversed(weighed.excluded)}
    texts = [f"{cause}, as {says}" for says, cause in reversed(causes.items())]
    if texts:
        yield Section("excluded", ("; ".join(texts[:_MOST_EXCLUDED]),), most_lines=2)
    if weighed.excluded and not weighed.possible:
        missing = next(text for begin, text in _NONE_LEFT.items() if symptom.startswith(begin))
        text = f"{missing}: the report excludes the causes that such reports usually have"
        yield Section("missing", (text,), most_lines=2)
