"""Whether a run did what an issue reports: its exception, its ending, its output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from repros.diagnose.issue import Issue
from repros.engine.signature import normalise
from repros.model import Raised
from repros.scripts.try_.outcome import Link, ScriptOutcome, Status
from repros.scripts.try_.reported_output import compare_output, tells

_WORD = re.compile(r"[A-Za-z_]{3,}")
_FEWEST_WORDS = 3
"""A message with fewer words, such as `'labels'`, may come from anywhere; the frames decide."""
_SHORTEST_PART = 40
"""Characters of a message that identify it: an issue cuts the rest, and a later release has a prefix."""
_SAME_WORDS, _MANY_WORDS = 0.9, 0.5
"""Shares of the words of two messages: of the same one with other numbers, and of one that may be the same."""
_LONGEST = 80
"""Characters of a message in a reason."""
_ENDED = re.compile(r"\bSegmentation fault\b|\bSIG(?:SEGV|ABRT|BUS|FPE|ILL)\b|\bcore dumped\b|\bAborted\b")


class Agreement(StrEnum):
    """How a run compares with a report."""

    AS_REPORTED = "as reported"
    NOT_AS_REPORTED = "not as reported"
    NOT_COMPARED = "not compared"
    """The report has nothing that decides, or the run did not get there."""


@dataclass(frozen=True)
class Comparison:
    """A run compared with an issue."""

    agreement: Agreement
    reason: str
    """What is equal, or what differs, with the words of both."""
    printed: str = ""
    """The line that the run printed as reported; empty if something else agrees."""

    def __str__(self) -> str:
        """Return `as reported: ValueError at torch/nn/functional.py:2546 layer_norm`."""
        return f"{self.agreement.value}: {self.reason}"


def compare_with_issue(issue: Issue, outcome: ScriptOutcome, output: Iterable[str]) -> Comparison:
    """Compare a run with what an issue reports; a doubt is no agreement.

    Args:
        issue: the issue.
        outcome: how the run ended.
        output: the lines that it printed.
    """
    match outcome.status:
        case Status.NOT_RUN | Status.NOT_JUDGED | Status.INCOMPLETE:
            return Comparison(Agreement.NOT_COMPARED, outcome.note or outcome.status.value)
        case Status.EXCEPTION:
            return _compare_exception(issue, outcome)
        case Status.HANG:
            return _compare_hang(issue)
        case Status.TIME_LIMIT:
            return Comparison(Agreement.NOT_COMPARED, "it timed out: it may hang, or be slow")
        case Status.SIGNAL | Status.EXIT:
            return _compare_ending(issue, outcome)
        case Status.CLEAN:
            return _compare_clean(issue, output)


def _reported(issue: Issue) -> list[Raised]:
    """Return the exceptions of an issue, the last of each chain first, without warnings, then that of its title."""
    chains = ([link.raised for link in failure.links if link.has_class] for failure in issue.failures)
    logged = [raised for chain in chains for raised in reversed(chain) if not raised.type.endswith("Warning")]
    return [*logged, *([issue.title_error] if issue.title_error else [])]


def _compare_exception(issue: Issue, outcome: ScriptOutcome) -> Comparison:
    reported = _reported(issue)
    for raised in reported:
        for link in outcome.chain:
            if _is_same(raised, link):
                at = f" at {link.frames[-1]}" if link.frames else ""
                return Comparison(Agreement.AS_REPORTED, f"{_name(link.type)}{at}")
    seen = _sentence(outcome.chain[0].type, outcome.chain[0].message) if outcome.chain else outcome.signature or ""
    if open_ := next((raised for raised in reported for link in outcome.chain if _may_be_same(raised, link)), None):
        like = _sentence(open_.type, open_.message)
        return Comparison(Agreement.NOT_COMPARED, f"{seen}, like {like} in the issue, but maybe another")
    if any(_is_titled(issue.title, link.message) for link in outcome.chain):
        return Comparison(Agreement.AS_REPORTED, f"{seen}, as in the title")
    if not reported and not issue.is_hang and not any(map(tells, issue.printed.seen)):
        problem = "and the issue has neither a traceback nor an output that this run could differ from"
        return Comparison(Agreement.NOT_COMPARED, f"{seen}, {problem}")
    return Comparison(Agreement.NOT_AS_REPORTED, f"{seen} where the issue has {_what(issue)}")


def _is_same(raised: Raised, link: Link) -> bool:
    """Return whether a run raised a reported exception: class and message, or class, place and most of the words."""
    if _name(raised.type) != _name(link.type):
        return False
    one, other = (" ".join(normalise(text).split()) for text in (raised.message, link.message))
    shorter, longer = sorted((one, other), key=len)
    is_equal = one == other or (len(shorter) >= _SHORTEST_PART and shorter.removesuffix("...") in longer)
    if not _says_something(one):
        return is_equal and _is_same_place(raised.frames, link.frames)
    if raised.type.endswith("AssertionError"):  # its numbers are what is reported
        return is_equal
    first = _first_line(raised.message)
    if _says_something(first) and first == _first_line(link.message):
        return True
    return is_equal or (_is_alike(one, other) and _is_same_place(raised.frames, link.frames))


def _first_line(message: str) -> str:
    """Return a message up to its first line's end; a line that ends with a colon says nothing without the next."""
    taken = list[str]()
    for line in filter(str.strip, message.split("\n")):
        taken.append(line)
        if not line.rstrip().endswith(":"):
            break
    return " ".join(normalise(" ".join(taken)).split())


def _is_titled(title: str, message: str) -> bool:
    """Return whether an issue's title has the first line of a message."""
    first, flat = _first_line(message), " ".join(normalise(title).split())
    return len(first) >= _SHORTEST_PART and first in flat


def _is_alike(one: str, other: str) -> bool:
    """Return whether two messages begin with the same sentence, or have the same words in any order."""
    begins_alike = len(one) >= _SHORTEST_PART and one[:_SHORTEST_PART] == other[:_SHORTEST_PART]
    return begins_alike or _overlap(one, other) >= _SAME_WORDS


def _may_be_same(raised: Raised, link: Link) -> bool:
    """Return whether class and message are equal but say too little, or are alike."""
    if _name(raised.type) != _name(link.type):
        return False
    one, other = normalise(raised.message), normalise(link.message)
    if not _says_something(one):
        return one == other
    return not raised.type.endswith("AssertionError") and _overlap(one, other) >= _MANY_WORDS


def _overlap(one: str, other: str) -> float:
    """Return the share of the words of two texts that both have."""
    first, second = ({*re.findall(r"[^\W\d]{2,}", text)} for text in (one, other))
    return len(first & second) / max(len(first | second), 1)


def _says_something(message: str) -> bool:
    return len(_WORD.findall(message)) >= _FEWEST_WORDS


def _is_same_place(reported: Sequence[str], seen: Sequence[str]) -> bool:
    """Return whether the innermost frames are of the same function in files of the same name, inside a library."""
    if not reported or not seen:
        return False
    places = []
    for frame in (reported[-1], seen[-1]):
        location, _, function = frame.rpartition(" ")
        places.append((re.split(r"[/\\]", location.rpartition(":")[0])[-1], function))
    return places[0] == places[1] and places[0][1] != "<module>"


def _compare_hang(issue: Issue) -> Comparison:
    if issue.is_hang:
        return Comparison(Agreement.AS_REPORTED, "it hangs")
    return Comparison(Agreement.NOT_AS_REPORTED, f"it hangs where the issue has {_what(issue)}")


def _compare_ending(issue: Issue, outcome: ScriptOutcome) -> Comparison:
    ended = outcome.signature or outcome.status.value
    if outcome.status is Status.SIGNAL and _ENDED.search("\n".join((issue.title, issue.seen, *issue.printed.seen))):
        return Comparison(Agreement.AS_REPORTED, f"it is ended by {ended}")
    return Comparison(Agreement.NOT_AS_REPORTED, f"{ended} where the issue has {_what(issue)}")


def _compare_clean(issue: Issue, output: Iterable[str]) -> Comparison:
    """Compare the output of a run that ended well; an exception or a hang in the issue must not have happened."""
    found = compare_output(issue.printed, output)
    if found.different[0] and not found.equal:
        seen, reported = found.different
        return Comparison(Agreement.NOT_AS_REPORTED, f"{_cut(seen)} where the issue has {_cut(reported)}")
    if found.expected and not found.equal:
        return Comparison(Agreement.NOT_AS_REPORTED, f"{_cut(found.expected)}, which the issue expects")
    if _reported(issue) or issue.is_hang:
        return Comparison(Agreement.NOT_AS_REPORTED, f"it exits cleanly where the issue has {_what(issue)}")
    if found.different[0]:
        seen, reported = found.different
        problem = f"{_cut(found.equal)} as in the issue, but {_cut(seen)} where it has {_cut(reported)}"
        return Comparison(Agreement.NOT_COMPARED, problem)
    if found.equal:
        return Comparison(Agreement.AS_REPORTED, f"prints {_cut(found.equal)}", found.equal)
    return Comparison(
        Agreement.NOT_COMPARED, "it exits cleanly, and the issue has no output that this run could repeat"
    )


def _what(issue: Issue) -> str:
    """Return what an issue reports, in a few words."""
    if reported := _reported(issue):
        return _sentence(reported[0].type, reported[0].message)
    if issue.is_hang:
        return "a hang"
    seen = next(filter(tells, issue.printed.seen), "")
    return f"the output {_cut(seen)}" if seen else "no exception"


def _sentence(kind: str, message: str) -> str:
    return _cut(f"{_name(kind)}: {message}".removesuffix(": "))


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]} [...]"


def _name(kind: str) -> str:
    return kind.rpartition(".")[2]
