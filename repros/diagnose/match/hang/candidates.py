"""The documented failures that a hang may show: those whose ranks wait in the same call.

A hang has no message. A repro is recognised by the calls in which its ranks wait, which `match.toml` has as `waits`.
Other mistakes cause a wait there too, so such a repro is only possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from repros.diagnose.match import Candidate, ChainLink, Confidence, LogFailure, Occurrence
from repros.diagnose.match.affected import check_affected
from repros.diagnose.match.candidates import sort_candidates
from repros.diagnose.match.hang.calls import PythonFrame
from repros.diagnose.match.hang.disagree import DisagreementKind
from repros.diagnose.match.hang.find import Hang
from repros.diagnose.match.hint_files import hints_of
from repros.diagnose.match.index import SignatureEntry, SignatureMatch
from repros.model import Ending, ExpectedOutcome, Raised, Repro


def find_hang_candidates(
    hang: Hang, repros: Iterable[Repro], versions: Mapping[str, tuple[str, ...]]
) -> tuple[Candidate, ...]:
    """Return the repros of a hang in which a rank waits in the same call.

    Args:
        hang: the hang.
        repros: the catalogue.
        versions: the versions that a log states, or those of an environment.
    """
    failures = tuple(_failures(hang))
    by_repro = {
        repro.id: occurrences
        for repro in repros
        if (occurrences := tuple(_occurrences(repro, failures)))  # in the order of the ranks
    }
    candidates = []
    for id_, occurrences in by_repro.items():
        best = occurrences[0]
        affected = check_affected(best.repro, best.match.entry.variants, versions)
        alternatives = tuple(sorted(by_repro.keys() - {id_}))
        candidates.append(Candidate(best.repro, Confidence.POSSIBLE, occurrences, affected, alternatives))
    return sort_candidates(candidates)


def _occurrences(repro: Repro, failures: Iterable[LogFailure]) -> Iterator[Occurrence]:
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
        if frame := next(filter(None, map(failure.call_stack.find_call, waits)), ""):
            name = frame.rpartition(" ")[2]
            match = SignatureMatch(entry, name, is_documented=False, is_symptom=True, is_wait=True)
            yield Occurrence(failure, failure.links[0], match, (), evidence=frame)


def _failures(hang: Hang) -> Iterator[LogFailure]:
    """Yield a failure without an exception class for the stack of each rank that waits where the ranks disagree."""
    kinds = (DisagreementKind.MISSING, DisagreementKind.OTHER_CALL)
    waiting = {
        rank for disagreement in hang.disagreements if disagreement.kind in kinds for rank in disagreement.waiting
    }
    waiting |= {wait.rank for wait in hang.unanswered}
    for rank, call in hang.last:
        if rank in waiting and call and call.frames:
            yield _failure(rank, f"waits in {call.text}", call.frames)
    for report in hang.reports:
        if report.rank in waiting and report.frames:
            operation = next(filter(None, report.timed_out.values()), "a collective")
            yield _failure(report.rank, f"waits in {operation}", report.frames, report.line)


def _failure(rank: int, message: str, frames: Iterable[PythonFrame], line: int = 0) -> LogFailure:
    raised = Raised("", (), message, tuple(map(str, frames))[::-1])
    return LogFailure((ChainLink(raised, line, has_traceback=True, has_class=False),), (f"rank {rank}",))
