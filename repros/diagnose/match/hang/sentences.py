"""Sentences about a hang that its report and an answer share."""

from __future__ import annotations

from collections.abc import Iterable

from repros.diagnose.match.hang.calls import DEFAULT, CollectiveCall
from repros.diagnose.match.hang.disagree import DisagreementKind
from repros.diagnose.match.hang.find import Hang, ranks_text


def hang_title(hang: Hang) -> str:
    """Return which rank the others wait for, in one sentence."""
    source = "dumps" if hang.is_from_dumps else "log"
    if hang.has_waiting_ranks:
        return f"A hang: {_cause(hang) or _waits(hang, source)}."
    if hang.mismatches:
        return f"No rank waits, but the ranks called different collectives in {hang.mismatches[0].group_text}."
    return f"No rank waits: every call in the {source} is completed."


def _cause(hang: Hang) -> str:
    """Return the ranks or calls that cause the hang; empty if the evidence has none."""
    if hang.disagreements and hang.disagreements[0].kind is DisagreementKind.OTHER_CALL:
        return f"the ranks call different collectives in {hang.disagreements[0].group_text}"
    if hang.roots:
        return f"the other ranks wait for {ranks_text(hang.roots)}"
    if hang.suspects:
        return f"the suspect is {ranks_text(hang.suspects)}, {_lack(hang)}; the others wait"
    if hang.opposite:
        return f"{ranks_text(hang.circle)} called {' and '.join(hang.opposite)} in opposite order"
    return f"{ranks_text(hang.circle)} wait for each other" if hang.circle else ""


def _lack(hang: Hang) -> str:
    """Return why the suspects are not known to be missing: they have no dump, or no call in it."""
    one = len(hang.suspects) == 1
    if {*hang.suspects} <= {rank for rank, call in hang.last if call is None}:
        return "which has no call in its dump" if one else "which have no call in their dumps"
    return "which has no dump" if one else "which have no dumps"


def _waits(hang: Hang, source: str) -> str:
    """Return which ranks wait."""
    first = hang.disagreements[0] if hang.disagreements else None
    if first and first.kind is DisagreementKind.AHEAD:
        wait = "waits" if len(first.waiting) == 1 else "wait"
        return f"{ranks_text(first.waiting)} {wait} in a call that {ranks_have(first.finished)} completed"
    ranks = {rank for disagreement in hang.disagreements for rank in disagreement.waiting}
    if len(ranks) == 1:
        shows = "dumps show" if hang.is_from_dumps else "log shows"
        return f"{ranks_text(ranks)} waits; the {shows} no other rank there"
    is_whole = not any(disagreement.absent for disagreement in hang.disagreements)
    rest = ", so none of them is missing" if is_whole else "; nothing is known of the others"
    return f"the ranks in the {source} wait in the same calls{rest}"


def ranks_have(ranks: Iterable[int]) -> str:
    """Return `rank 1 has`, `ranks 1, 2 have`."""
    ranks = tuple(ranks)
    return f"{ranks_text(ranks)} {'has' if len(ranks) == 1 else 'have'}"


def call_text(call: CollectiveCall | None) -> str:
    """Return the call in which a rank waits, or after which it has gone on, and its location."""
    if call is None:
        return "no unfinished call"
    verb = "after" if call.is_finished else "in"
    location = f", {call.location}" if call.location else ""
    group = "the default group" if call.description == DEFAULT else call.description or f"group {call.group}"
    return f"{verb} {call.text} in {group}{location}"
