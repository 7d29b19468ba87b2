"""What `repros match --json` says about a hang, a public format: the list `hangs` beside the other keys."""

from __future__ import annotations

from typing import TypedDict

from repros.diagnose.match.hang.calls import Call
from repros.diagnose.match.hang.disagree import Disagreement
from repros.diagnose.match.hang.find import Hang
from repros.diagnose.match.hang.waits import Unanswered
from repros.diagnose.match.hang.watchdog import Report


class CallsJson(TypedDict):
    """What some ranks called."""

    call: str
    """`all_reduce of 1024x16 Float`."""
    ranks: list[int]


class DisagreementJson(TypedDict):
    """One collective of one group, in which ranks wait."""

    kind: str
    """`missing`, `other call`, `unfinished` or `all wait`."""
    group: str
    """The name of the group; empty if a log does not say."""
    group_ranks: list[int]
    number: int
    """Of the collective in the group, as PyTorch counts: `collective_seq_id`, `SeqNum`."""
    calls: list[CallsJson]
    """Several if the ranks called different things."""
    waiting: list[int]
    missing: list[int]
    """Ranks that never called it."""
    finished: list[int]
    unknown: list[int]
    """Ranks whose evidence cannot tell."""
    absent: list[int]
    """Ranks without evidence."""
    since_ns: int | None
    """When the first rank that waits made the call, in nanoseconds since 1970."""


class UnansweredJson(TypedDict):
    """A send or receive without a counterpart."""

    group: str
    rank: int
    peer: int
    call: str


class PlaceJson(TypedDict):
    """Where a rank was: the first call that it waits in, or else its last call."""

    rank: int
    call: str | None
    group: str | None
    number: int | None
    state: str | None
    """`scheduled`, `started` or `finished`."""
    place: str | None
    """`file:line function`, the innermost frame outside of libraries."""


class ReportJson(TypedDict):
    """What one rank's watchdog wrote into the log about one group."""

    rank: int
    rank_is_global: bool
    line: int
    group: str
    timed_out: dict[str, str]
    """The operations that passed their timeout, by number."""
    last_enqueued: int | None
    last_completed: int | None
    place: str | None


class HangJson(TypedDict):
    """What the dumps, or a log, say about a hang."""

    source: str
    """`dumps` or `log`."""
    waited_for: list[int]
    """The ranks that the others wait for in the end; empty if the evidence names none."""
    circle: list[int]
    """Ranks that wait for each other."""
    disagreements: list[DisagreementJson]
    unanswered: list[UnansweredJson]
    ranks: list[PlaceJson]
    reports: list[ReportJson]
    notes: list[str]


def hang_to_json(hang: Hang) -> HangJson:
    """Return the answer as an object for JSON."""
    return {
        "source": "dumps" if hang.is_from_dumps else "log",
        "waited_for": list(hang.roots),
        "circle": list(hang.circle),
        "disagreements": list(map(_disagreement_to_json, hang.disagreements)),
        "unanswered": list(map(_unanswered_to_json, hang.unanswered)),
        "ranks": [_place_to_json(rank, call) for rank, call in hang.last],
        "reports": list(map(_report_to_json, hang.reports)),
        "notes": list(hang.notes),
    }


def _disagreement_to_json(found: Disagreement) -> DisagreementJson:
    return {
        "kind": found.kind.value,
        "group": found.group,
        "group_ranks": list(found.ranks),
        "number": found.number,
        "calls": [{"call": call, "ranks": list(ranks)} for call, ranks in found.calls],
        "waiting": list(found.waiting),
        "missing": list(found.missing),
        "finished": list(found.finished),
        "unknown": list(found.unknown),
        "absent": list(found.absent),
        "since_ns": found.since_ns or None,
    }


def _unanswered_to_json(wait: Unanswered) -> UnansweredJson:
    return {"group": wait.group, "rank": wait.rank, "peer": wait.peer, "call": wait.call.text}


def _place_to_json(rank: int, call: Call | None) -> PlaceJson:
    return {
        "rank": rank,
        "call": call.text if call else None,
        "group": call.group if call else None,
        "number": call.number if call else None,
        "state": call.state.value if call else None,
        "place": str(call.place) if call and call.place else None,
    }


def _report_to_json(report: Report) -> ReportJson:
    place = report.place
    return {
        "rank": report.rank,
        "rank_is_global": report.is_global,
        "line": report.line,
        "group": report.group,
        "timed_out": {str(number): text for number, text in sorted(report.timed_out.items())},
        "last_enqueued": report.enqueued,
        "last_completed": report.completed,
        "place": str(place) if place else None,
    }
