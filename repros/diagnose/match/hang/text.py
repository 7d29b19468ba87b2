"""A hang in the report of `repros match`, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from repros.diagnose.match.hang.disagree import DisagreementKind, RankDisagreement
from repros.diagnose.match.hang.find import Hang, ranks_text
from repros.diagnose.match.hang.sentences import call_text, hang_title, ranks_have
from repros.diagnose.match.hang.watchdog import WatchdogReport
from repros.text.layout import entries, entry
from repros.text.styled import Text
from repros.text.wording import count, wrap

_MOST_SHOWN = 3
"""Disagreements shown in detail."""
_MOST_LOCATIONS = 8
"""Locations of ranks; the ranks at others are counted."""


def format_hang(hang: Hang, width: int) -> Text:
    """Return the report about a hang in at most `width` columns; only names may be longer."""
    lines = [Text(line, "bold") for line in wrap(hang_title(hang), width)]
    shown = _informative(hang)
    for disagreement in shown:
        lines += _disagreement_lines(disagreement, width, "dumps" if hang.is_from_dumps else "log")
    others = [disagreement for disagreement in hang.disagreements if disagreement not in shown]
    for mismatch in hang.mismatches:
        lines += _disagreement_lines(mismatch, width, "dumps")
    lines += entry("also", _others_text(others, hang), width)
    lines += entries("where", _where_texts(hang), width)
    lines += [Text(line, "yellow") for note in hang.notes for line in wrap(note, width)]
    return Text("\n").join(lines)


def _informative(hang: Hang) -> list[RankDisagreement]:
    """Return the disagreements with a rank or kind that earlier ones lack; if there is none, the first."""
    shown: list[RankDisagreement] = []
    named: set[tuple[DisagreementKind, int]] = set()
    for disagreement in hang.disagreements:
        names = {(disagreement.kind, rank) for rank in (*disagreement.culprits, -1)}
        if disagreement.kind is not DisagreementKind.ALL_WAIT and not names <= named:
            shown.append(disagreement)
            named |= names
    return (shown or list(hang.disagreements[:1]))[:_MOST_SHOWN]


def _disagreement_lines(disagreement: RankDisagreement, width: int, source: str) -> Iterator[Text]:
    call, number = disagreement.calls[0][0], f"number {disagreement.number} of {disagreement.group_text}"
    missing, finished = disagreement.missing, disagreement.finished
    waiting = f"{ranks_text(disagreement.waiting)}{_since(disagreement)}" if disagreement.waiting else ""
    match disagreement.kind:
        case DisagreementKind.MISSING:
            yield from entry("missing", f"{ranks_text(missing)} never called {call}, {number}", width)
            yield from entry("waiting", waiting, width)
        case DisagreementKind.OTHER_CALL:
            yield from entry("differ", f"{number} is not the same call on all ranks", width)
            yield from entries("", (f"{ranks_text(ranks)}: {text}" for text, ranks in disagreement.calls), width)
            yield from entry("missing", ranks_text(missing) if missing else "", width)
        case DisagreementKind.UNFINISHED:
            stuck = f"{ranks_have(disagreement.waiting)} not completed {call}, {number}; {ranks_have(finished)}"
            yield from entry("stuck", f"{stuck}: a device or the network is stuck there", width)
        case DisagreementKind.AHEAD:
            yield from entry("waiting", f"{waiting}: {call}, {number}", width)
            yield from entry("ahead", f"{ranks_have(finished)} completed that call", width)
        case DisagreementKind.ALL_WAIT:
            yield from entry("waiting", f"{waiting}: {call}, {number}", width)
    if disagreement.not_started:
        begun = "their devices have not begun the call, those of the others have: earlier work does not end"
        yield from entry("not begun", f"{ranks_text(disagreement.not_started)}: {begun}", width)
    if disagreement.unknown:
        yield from entry("unknown", ranks_text(disagreement.unknown), width)
    if disagreement.absent:
        yield from entry("absent", f"{ranks_text(disagreement.absent)}: nothing in the {source}", width)


def _since(disagreement: RankDisagreement) -> str:
    if not disagreement.since_ns:
        return ""
    return f", since {datetime.fromtimestamp(disagreement.since_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _others_text(others: Iterable[RankDisagreement], hang: Hang) -> str:
    """Return the numbers of further groups and of unanswered sends and receives, in one sentence."""
    kinds = Counter(disagreement.kind for disagreement in others)
    words = {
        DisagreementKind.MISSING: "with missing ranks",
        DisagreementKind.OTHER_CALL: "with different calls",
        DisagreementKind.UNFINISHED: "with stuck ranks",
        DisagreementKind.AHEAD: "with ranks that are ahead",
        DisagreementKind.ALL_WAIT: "in which all ranks wait",
    }
    parts = [f"{count(number, 'group')} {words[kind]}" for kind, number in kinds.items()]
    if hang.unanswered:
        parts.append(f"{count(len(hang.unanswered), 'send or receive', 'sends and receives')} without a counterpart")
    return "; ".join(parts)


def _where_texts(hang: Hang) -> Iterator[str]:
    """Yield the locations of the ranks, those that others wait for first; ranks at one location together."""
    locations: dict[str, list[int]] = {}
    for rank, text in (*((rank, call_text(call)) for rank, call in hang.last), *map(_report_text, hang.reports)):
        locations.setdefault(text, []).append(rank)
    ordered = sorted(locations.items(), key=lambda item: (not set(item[1]) & set(hang.roots), item[1]))
    for text, ranks in ordered[:_MOST_LOCATIONS]:
        yield f"{ranks_text(ranks)}: {text}"
    if rest := {rank for _, ranks in ordered[_MOST_LOCATIONS:] for rank in ranks}:
        yield f"{ranks_text(rest)}: see --json"


def _report_text(report: WatchdogReport) -> tuple[int, str]:
    texts = [f"{text or 'a collective'}, number {number}" for number, text in sorted(report.timed_out.items())]
    waits = f"in {texts[0]}" if texts else "no timeout"
    last = ""
    if report.enqueued is not None:
        last = f"; last enqueued {report.enqueued}, last completed {report.completed}"
    location = f", {report.location}" if report.location else ""
    return report.rank, f"{waits}{location}{last}"
