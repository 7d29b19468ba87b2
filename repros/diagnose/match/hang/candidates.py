"""The documented failures that a hang may be: those whose ranks wait below the same call.

A hang has no message. What a repro has of its own is where its ranks wait, so `match.toml` names these calls in
`waits`. Other mistakes lead there, too, so such a repro is no more than possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from repros.diagnose.match import Candidate, Confidence, Failure, Link, Sighting
from repros.diagnose.match.affected import check_affected
from repros.diagnose.match.candidates import sort_candidates
from repros.diagnose.match.hang.calls import Frame
from repros.diagnose.match.hang.disagree import Kind
from repros.diagnose.match.hang.find import Hang
from repros.diagnose.match.hints import hints_of
from repros.diagnose.match.index import SignatureEntry, SignatureMatch
from repros.diagnose.match.stack import Stack
from repros.model import Ending, ExpectedOutcome, Raised, Repro


def find_hang_candidates(
    hang: Hang, repros: Iterable[Repro], versions: Mapping[str, tuple[str, ...]]
) -> tuple[Candidate, ...]:
    """Return the repros that document a hang in which a rank waits below the same call.

    Args:
        hang: the evidence.
        repros: the catalogue.
        versions: the versions that a log states, or those of an environment.
    """
    failures = tuple(_failures(hang))
    found = {
        repro.id: sightings
        for repro in repros
        if (sightings := tuple(_sightings(repro, failures)))  # in the order of the ranks
    }
    candidates = []
    for id_, sightings in found.items():
        best = sightings[0]
        affected = check_affected(best.repro, best.match.entry.variants, versions)
        rivals = tuple(sorted(found.keys() - {id_}))
        candidates.append(Candidate(best.repro, Confidence.POSSIBLE, sightings, affected, rivals))
    return sort_candidates(candidates)


def _sightings(repro: Repro, failures: Iterable[Failure]) -> Iterator[Sighting]:
    waits = hints_of(repro).waits
    variants = tuple(
        variant
        for variant in repro.variants
        if variant.outcome is ExpectedOutcome.FAILS
        and variant.signature.ends
        and variant.signature.ends.ending is Ending.TIMED_OUT
    )
    if not waits or not variants:
        return
    entry = SignatureEntry(repro, variants[0].signature, variants)
    for failure in failures:
        stack = Stack(failure)
        if frame := next(filter(None, map(stack.find_call, waits)), ""):
            name = frame.rpartition(" ")[2]
            match = SignatureMatch(entry, name, is_documented=False, is_symptom=True, is_wait=True)
            yield Sighting(failure, failure.links[0], match, (), evidence=frame)


def _failures(hang: Hang) -> Iterator[Failure]:
    """Yield the stack of each rank that waits where the ranks disagree, as that of an exception without a class."""
    kinds = (Kind.MISSING, Kind.OTHER_CALL)
    waiting = {rank for found in hang.disagreements if found.kind in kinds for rank in found.waiting}
    waiting |= {wait.rank for wait in hang.unanswered}
    for rank, call in hang.last:
        if rank in waiting and call and call.frames:
            yield _failure(rank, f"waits in {call.text}", call.frames)
    for report in hang.reports:
        if report.rank in waiting and report.frames:
            operation = next(filter(None, report.timed_out.values()), "a collective")
            yield _failure(report.rank, f"waits in {operation}", report.frames, report.line)


def _failure(rank: int, message: str, frames: Iterable[Frame], line: int = 0) -> Failure:
    raised = Raised("", (), message, tuple(map(str, frames))[::-1])
    return Failure((Link(raised, line, has_traceback=True, has_class=False),), (f"rank {rank}",))
