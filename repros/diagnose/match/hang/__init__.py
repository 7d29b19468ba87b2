"""Find the ranks that a hang waits for, in flight recorder dumps and in the NCCL watchdog's lines of a log.

`dumps` finds and reads dumps: `plain_pickle` reads a pickle without running it, `entries` parses its values into
`calls`. `groups` collects the calls of a process group by rank, `disagree` finds the collective in which the ranks
differ, and `waits` follows who waits for whom across all groups. `watchdog` and `log_groups` do the same with the lines
of a log. `find` combines both, and `candidates` finds the documented failures that hang there. `text` and `json_format`
present the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from repros.diagnose.match import LogMatch, SignatureIndex, match_log
from repros.diagnose.match.candidates import sort_candidates
from repros.diagnose.match.hang.marks import SIGNS
from repros.diagnose.match.log import LogLines
from repros.diagnose.match.versions import installed_versions

if TYPE_CHECKING:
    from repros.diagnose.match.hang.calls import Dump
    from repros.diagnose.match.hang.find import Hang
    from repros.model import Environment, Repro

__all__ = ["EvidenceMatch", "match_evidence"]


@dataclass(frozen=True)
class EvidenceMatch:
    """The documented failures and the hangs that a log and dumps show."""

    match: LogMatch
    """The documented failures; with dumps alone, those with a hang in the same calls."""
    hangs: tuple[Hang, ...]
    """The hang in the dumps, then the hang in the log; empty if there is none."""
    has_log: bool


def match_evidence(
    log: LogLines | None,
    dumps: Sequence[Dump],
    repros: Iterable[Repro],
    environment: Environment | None = None,
    index: SignatureIndex | None = None,
) -> EvidenceMatch:
    """Compare a log and dumps with the catalogue, and find the ranks that a hang waits for.

    Args:
        log: the log, if any.
        dumps: the dumps of the ranks, if any.
        repros: the catalogue; with its index, iterated over only if there is a hang.
        environment: the program's environment, for the versions that the log does not state.
        index: the catalogue's signatures; by default made of it.
    """
    catalogue = () if index else tuple(repros)
    index = index or SignatureIndex(catalogue)
    if log is None:
        packages = index.packages
        match = LogMatch((), (), (), installed_versions(environment, packages) if environment else {}, ())
    else:
        match = match_log(log, index, environment)
    hangs = tuple(_find_hangs(log, dumps))
    if hangs:
        from repros.diagnose.match.hang.candidates import find_hang_candidates  # noqa: PLC0415 - few logs have a hang

        catalogue = catalogue or tuple(repros)
        candidates = {candidate.repro.id: candidate for candidate in match.candidates}
        for hang in hangs:
            for candidate in find_hang_candidates(hang, catalogue, match.versions):
                candidates.setdefault(candidate.repro.id, candidate)
        match = replace(match, candidates=sort_candidates(candidates.values()))
    return EvidenceMatch(match, hangs, has_log=log is not None)


def _find_hangs(log: LogLines | None, dumps: Sequence[Dump]) -> Iterator[Hang]:
    """Yield the hang in the dumps and the one in the log; the code for both is imported only where it is needed."""
    if dumps:
        from repros.diagnose.match.hang.find import find_hang  # noqa: PLC0415 - see above

        yield find_hang(dumps)
    if log is not None and any(mark in text for _, text in log for mark in SIGNS):
        from repros.diagnose.match.hang.find import find_log_hang  # noqa: PLC0415 - see above
        from repros.diagnose.match.hang.watchdog import read_watchdog  # noqa: PLC0415 - see above

        if (hang := find_log_hang(read_watchdog(log))).has_waiting_ranks:
            yield hang
