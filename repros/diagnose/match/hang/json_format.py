"""A hang in the output of `repros match --json`, a public format: the list `hangs` in addition to the other keys."""

from __future__ import annotations

from typing import Any

from repros.diagnose.match.hang.calls import CollectiveCall
from repros.diagnose.match.hang.disagree import RankDisagreement
from repros.diagnose.match.hang.find import Hang
from repros.diagnose.match.hang.waits import Unanswered
from repros.diagnose.match.hang.watchdog import WatchdogReport


def hang_to_json(hang: Hang) -> dict[str, Any]:
    """Return a hang as an object for JSON."""
    return {
        "source": "dumps" if hang.is_from_dumps else "log",
        # The ranks that the others wait for, directly or through other ranks; empty if the evidence names none.
        "waited_for": list(hang.roots),
        "suspects": list(hang.suspects),  # ranks without a dump that all others wait for
        "opposite_order": list(hang.opposite),  # groups that the ranks of the circle called in opposite order
        "mismatches": list(map(_disagreement_to_json, hang.mismatches)),  # different calls that are completed
        "circle": list(hang.circle),  # ranks that wait for each other
        "disagreements": list(map(_disagreement_to_json, hang.disagreements)),
        "unanswered": list(map(_unanswered_to_json, hang.unanswered)),
        "ranks": [_location_to_json(rank, call) for rank, call in hang.last],
        "reports": list(map(_report_to_json, hang.reports)),
        "notes": list(hang.notes),
    }


def _disagreement_to_json(disagreement: RankDisagreement) -> dict[str, Any]:
    return {
        "kind": disagreement.kind.value,  # `missing`, `other call`, `unfinished` or `all wait`
        "group": disagreement.group,  # empty if a log lacks its name
        "group_ranks": list(disagreement.ranks),
        "number": disagreement.number,  # as PyTorch counts: `collective_seq_id`, `SeqNum`
        # Several if the ranks called different collectives.
        "calls": [{"call": call, "ranks": list(ranks)} for call, ranks in disagreement.calls],
        "waiting": list(disagreement.waiting),
        "missing": list(disagreement.missing),  # never called it
        "finished": list(disagreement.finished),
        "unknown": list(disagreement.unknown),  # the evidence leaves open whether they called it
        "absent": list(disagreement.absent),  # without evidence
        "not_started": list(disagreement.not_started),  # waiting, not begun on the device; that of others has begun
        "since_ns": disagreement.since_ns or None,  # since 1970, of the first waiting call
    }


def _unanswered_to_json(wait: Unanswered) -> dict[str, Any]:
    return {"group": wait.group, "rank": wait.rank, "peer": wait.peer, "call": wait.call.text}


def _location_to_json(rank: int, call: CollectiveCall | None) -> dict[str, Any]:
    return {
        "rank": rank,
        # The first call in which it waits, or else its last one.
        "call": call.text if call else None,
        "group": call.group if call else None,
        "number": call.number if call else None,
        "state": call.state.value if call else None,
        "place": str(call.location) if call and call.location else None,
    }


def _report_to_json(report: WatchdogReport) -> dict[str, Any]:
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
