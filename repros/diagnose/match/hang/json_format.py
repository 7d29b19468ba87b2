"""A hang in the output of `repros match --json`, a public format: the list `hangs` in addition to the other keys."""

from __future__ import annotations

from typing import TypedDict

from repros.diagnose.match.hang.calls import CollectiveCall
from repros.diagnose.match.hang.disagree import RankDisagreement
from repros.diagnose.match.hang.find import Hang
from repros.diagnose.match.hang.waits import Unanswered
from repros.diagnose.match.hang.watchdog import WatchdogReport


class CallsJson(TypedDict):
    """A call and its ranks."""

    call: str
    """`all_reduce of 1024x16 Float`."""
    ranks: list[int]


class DisagreementJson(TypedDict):
    """One collective of one group, in which ranks wait."""

    kind: str
    """`missing`, `other call`, `unfinished` or `all wait`."""
    group: str
    """The name of the group; empty if a log lacks it."""
    group_ranks: list[int]
    number: int
    """Of the collective in the group, as PyTorch counts: `collective_seq_id`, `SeqNum`."""
    calls: list[CallsJson]
    """Several if the ranks called different collectives."""
    waiting: list[int]
    missing: list[int]
    """Ranks that never called it."""
    finished: list[int]
    unknown: list[int]
    """Ranks whose evidence leaves open whether they called it."""
    absent: list[int]
    """Ranks without evidence."""
    since_ns: int | None
    """Time of the first waiting rank's call, in nanoseconds since 1970."""


class UnansweredJson(TypedDict):
    """A send or receive without a counterpart."""

    group: str
    rank: int
    peer: int
    call: str


class RankLocationJson(TypedDict):
    """The location of a rank: the first call in which it waits, or else its last call."""

    rank: int
    call: str | None
    group: str | None
    number: int | None
    state: str | None
    """`scheduled`, `started` or `finished`."""
    place: str | None
    """`file:line function`, the innermost frame outside of libraries."""


class ReportJson(TypedDict):
    """The lines of one rank's watchdog about one group."""

    rank: int
    rank_is_global: bool
    line: int
    group: str
    timed_out: dict[str, str]
    """The operations that timed out, by number."""
    last_enqueued: int | None
    last_completed: int | None
    place: str | None


class HangJson(TypedDict):
    """A hang, as dumps or a log show it."""

    source: str
    """`dumps` or `log`."""
    waited_for: list[int]
    """The ranks that the others wait for, directly or through other ranks; empty if the evidence names none."""
    circle: list[int]
    """Ranks that wait for each other."""
    disagreements: list[DisagreementJson]
    unanswered: list[UnansweredJson]
    ranks: list[RankLocationJson]
    reports: list[ReportJson]
    notes: list[str]


def hang_to_json(hang: Hang) -> HangJson:
    """Return a hang as an object for JSON."""
    return {
        "source": "dumps" if hang.is_from_dumps else "log",
        "waited_for": list(hang.roots),
        "circle": list(hang.circle),
        "disagreements": list(map(_disagreement_to_json, hang.disagreements)),
        "unanswered": list(map(_unanswered_to_json, hang.unanswered)),
        "ranks": [_location_to_json(rank, call) for rank, call in hang.last],
        "reports": list(map(_report_to_json, hang.reports)),
        "notes": list(hang.notes),
    }


def _disagreement_to_json(disagreement: RankDisagreement) -> DisagreementJson:
    return {
        "kind": disagreement.kind.value,
        "group": disagreement.group,
        "group_ranks": list(disagreement.ranks),
        "number": disagreement.number,
        "calls": [{"call": call, "ranks": list(ranks)} for call, ranks in disagreement.calls],
        "waiting": list(disagreement.waiting),
        "missing": list(disagreement.missing),
        "finished": list(disagreement.finished),
        "unknown": list(disagreement.unknown),
        "absent": list(disagreement.absent),
        "since_ns": disagreement.since_ns or None,
    }


def _unanswered_to_json(wait: Unanswered) -> UnansweredJson:
    return {"group": wait.group, "rank": wait.rank, "peer": wait.peer, "call": wait.call.text}


def _location_to_json(rank: int, call: CollectiveCall | None) -> RankLocationJson:
    return {
        "rank": rank,
        "call": call.text if call else None,
        "group": call.group if call else None,
        "number": call.number if call else None,
        "state": call.state.value if call else None,
        "place": str(call.location) if call and call.location else None,
    }


def _report_to_json(report: WatchdogReport) -> ReportJson:
    return {
        "rank": report.rank,
        "rank_is_global": report.is_global,
        "line": report.line,
        "group": report.group,
        "timed_out": {str(number): text for number, text in sorted(report.timed_out.items())},
        "last_enqueued": report.enqueued,
        "last_completed": report.completed,
        "place": str(report.location) if report.location else None,
    }
