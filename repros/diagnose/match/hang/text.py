"""What `repros match` says about a hang in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from repros.diagnose.match.hang import Evidence
from repros.diagnose.match.hang.calls import DEFAULT, Call
from repros.diagnose.match.hang.disagree import Disagreement, Kind
from repros.diagnose.match.hang.find import Hang, ranks_text
from repros.diagnose.match.hang.watchdog import Report
from repros.diagnose.match.text import format_match
from repros.text.layout import entries, entry
from repros.text.styled import Text
from repros.text.wording import count, wrap

_MOST_SHOWN = 3
"""Groups that are shown one by one."""
_MOST_PLACES = 8
"""Places at which ranks are; the others are counted."""


def format_evidence(evidence: Evidence, width: int) -> Text:
    """Return the whole report: the hangs, then the documented failures; of dumps alone without the log's part."""
    parts = [format_hang(hang, width) for hang in evidence.hangs]
    if evidence.has_log or evidence.found.candidates:
        parts.append(format_match(evidence.found, width))
    return Text("\n\n").join(parts)


def format_hang(hang: Hang, width: int) -> Text:
    """Return the answer in at most `width` columns; only names may be longer."""
    lines = [Text(line, "bold") for line in wrap(_title(hang), width)]
    shown = _worth_showing(hang)
    for found in shown:
        lines += _disagreement_lines(found, width, "dumps" if hang.is_from_dumps else "log")
    others = [found for found in hang.disagreements if found not in shown]
    lines += entry("also", _others_text(others, hang), width)
    lines += entries("where", _where_texts(hang), width)
    lines += [Text(line, "yellow") for note in hang.notes for line in wrap(note, width)]
    return Text("\n").join(lines)


def _worth_showing(hang: Hang) -> list[Disagreement]:
    """Return those that name a rank, or a kind of disagreement, that those before do not; else the first alone."""
    shown: list[Disagreement] = []
    named: set[tuple[Kind, int]] = set()
    for found in hang.disagreements:
        names = {(found.kind, rank) for rank in (*found.culprits, -1)}
        if found.kind is not Kind.ALL_WAIT and not names <= named:
            shown.append(found)
            named |= names
    return (shown or list(hang.disagreements[:1]))[:_MOST_SHOWN]


def _title(hang: Hang) -> str:
    source = "dumps" if hang.is_from_dumps else "log"
    if not hang.is_seen:
        return f"No rank waits: every call in the {source} has ended."
    first = hang.disagreements[0] if hang.disagreements else None
    if first and first.kind is Kind.OTHER_CALL:
        return f"A hang: the ranks call different things in {first.group_text}."
    if hang.roots:
        return f"A hang: the other ranks wait for {ranks_text(hang.roots)}."
    if hang.circle:
        return f"A hang: {ranks_text(hang.circle)} wait for each other."
    if first and first.kind is Kind.AHEAD:
        wait = "waits" if len(first.waiting) == 1 else "wait"
        return f"A hang: {ranks_text(first.waiting)} {wait} in a call that {_have(first.finished)} passed."
    ranks = {rank for found in hang.disagreements for rank in found.waiting}
    if len(ranks) == 1:
        shows = "dumps show" if hang.is_from_dumps else "log shows"
        return f"A hang: {ranks_text(ranks)} waits; the {shows} no other rank there."
    return f"A hang: the ranks in the {source} wait in the same calls, so none of them is missing."


def _disagreement_lines(found: Disagreement, width: int, source: str) -> Iterator[Text]:
    what, where = found.calls[0][0], f"number {found.number} of {found.group_text}"
    waiting = f"{ranks_text(found.waiting)}{_since(found)}" if found.waiting else ""
    match found.kind:
        case Kind.MISSING:
            yield from entry("missing", f"{ranks_text(found.missing)} never called {what}, {where}", width)
            yield from entry("waiting", waiting, width)
        case Kind.OTHER_CALL:
            yield from entry("differ", f"{where} is not the same call on all ranks", width)
            yield from entries("", (f"{ranks_text(ranks)}: {call}" for call, ranks in found.calls), width)
            yield from entry("missing", ranks_text(found.missing) if found.missing else "", width)
        case Kind.UNFINISHED:
            stands = f"{_have(found.waiting)} not seen the end of {what}, {where}, which"
            finished = f"{_have(found.finished)} seen"
            yield from entry("stuck", f"{stands} {finished}: a device or the network stands still there", width)
        case Kind.AHEAD:
            yield from entry("waiting", f"{waiting}: {what}, {where}", width)
            yield from entry("ahead", f"{ranks_text(found.finished)}, past that call", width)
        case Kind.ALL_WAIT:
            yield from entry("waiting", f"{waiting}: {what}, {where}", width)
    if found.unknown:
        yield from entry("unknown", ranks_text(found.unknown), width)
    if found.absent:
        yield from entry("absent", f"{ranks_text(found.absent)}: nothing in the {source}", width)


def _have(ranks: Iterable[int]) -> str:
    """Return `rank 1 has`, `ranks 1, 2 have`."""
    kept = tuple(ranks)
    return f"{ranks_text(kept)} {'has' if len(kept) == 1 else 'have'}"


def _since(found: Disagreement) -> str:
    if not found.since_ns:
        return ""
    return f", since {datetime.fromtimestamp(found.since_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _others_text(others: Iterable[Disagreement], hang: Hang) -> str:
    """Return how many further groups and sends there are, in one sentence."""
    by_kind: dict[Kind, list[Disagreement]] = {}
    for found in others:
        by_kind.setdefault(found.kind, []).append(found)
    words = {
        Kind.MISSING: "with ranks that are missing",
        Kind.OTHER_CALL: "with different calls",
        Kind.UNFINISHED: "with ranks that stand still",
        Kind.AHEAD: "with ranks that are ahead",
        Kind.ALL_WAIT: "in which all ranks wait",
    }
    parts = [f"{count(len(found), 'group')} {words[kind]}" for kind, found in by_kind.items()]
    if hang.unanswered:
        parts.append(f"{len(hang.unanswered)} of the sends and receives without the other side")
    return "; ".join(parts)


def _where_texts(hang: Hang) -> Iterator[str]:
    """Yield where the ranks were, those that are waited for first, with the ranks at one place together."""
    places: dict[str, list[int]] = {}
    for rank, text in (*((rank, _call_text(call)) for rank, call in hang.last), *map(_report_text, hang.reports)):
        places.setdefault(text, []).append(rank)
    ordered = sorted(places.items(), key=lambda item: (not set(item[1]) & set(hang.roots), item[1]))
    for text, ranks in ordered[:_MOST_PLACES]:
        yield f"{ranks_text(ranks)}: {text}"
    if rest := {rank for _, ranks in ordered[_MOST_PLACES:] for rank in ranks}:
        yield f"{ranks_text(rest)}: --json has them"


def _call_text(call: Call | None) -> str:
    if call is None:
        return "no unfinished call"
    verb = "after" if call.is_finished else "in"
    place = f", {call.place.file}:{call.place.line} {call.place.function}" if call.place else ""
    group = "the default group" if call.description == DEFAULT else call.description or f"group {call.group}"
    return f"{verb} {call.text} in {group}{place}"


def _report_text(report: Report) -> tuple[int, str]:
    texts = [f"{text or 'a collective'}, number {number}" for number, text in sorted(report.timed_out.items())]
    waits = f"in {texts[0]}" if texts else "no timeout of its own"
    last = ""
    if report.enqueued is not None:
        last = f"; last enqueued {report.enqueued}, last completed {report.completed}"
    place = f", {report.place}" if report.place else ""
    return report.rank, f"{waits}{place}{last}"
