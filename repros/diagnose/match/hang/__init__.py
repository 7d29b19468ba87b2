"""Which ranks a hang waits for, from what it left behind: flight recorders' dumps, and the NCCL watchdog's lines.

`dumps` finds and reads dumps: `plain_pickle` reads a pickle without running it, `entries` turns it into the values of
`calls`. `groups` lays the ranks of a process group side by side, `disagree` finds the collective in which they differ,
and `waits` follows who waits for whom over all groups. `watchdog` and `log_groups` do the same with the lines of a log.
`find` puts this together, and `candidates` names the documented failures that hang there. `text` and `json_format`
present it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.candidates import sort_candidates
from repros.diagnose.match.hang.calls import Dump
from repros.diagnose.match.hang.candidates import find_hang_candidates
from repros.diagnose.match.hang.find import Hang, find_hang, find_log_hang
from repros.diagnose.match.hang.watchdog import read_watchdog
from repros.diagnose.match.log import LogLines
from repros.diagnose.match.versions import installed_versions
from repros.model import Environment, Repro

__all__ = ["Evidence", "Hang", "match_evidence"]


@dataclass(frozen=True)
class Evidence:
    """What a log and dumps show."""

    found: LogMatch
    """The documented failures; of dumps alone those that hang where they do."""
    hangs: tuple[Hang, ...]
    """What the dumps say, then what the log says; empty if neither says anything about a hang."""
    has_log: bool


def match_evidence(
    log: LogLines | None, dumps: Sequence[Dump], repros: Iterable[Repro], environment: Environment | None = None
) -> Evidence:
    """Compare a log and dumps with the catalogue, and find the ranks that a hang waits for.

    Args:
        log: the log; None without one.
        dumps: those of the ranks; empty without any.
        repros: the catalogue.
        environment: where the program runs: it has the versions that the log does not state.
    """
    catalogue = tuple(repros)
    if log is None:
        packages = frozenset[str]().union(*(repro.named_packages for repro in catalogue))
        found = LogMatch((), (), (), installed_versions(environment, packages) if environment else {}, ())
    else:
        found = match_log(log, catalogue, environment)
    hangs = [find_hang(dumps)] if dumps else []
    watchdog = read_watchdog(log) if log is not None else None
    if watchdog and (told := find_log_hang(watchdog)).is_seen:
        hangs.append(told)
    known = {candidate.repro.id: candidate for candidate in found.candidates}
    for hang in hangs:
        for candidate in find_hang_candidates(hang, catalogue, found.versions):
            known.setdefault(candidate.repro.id, candidate)
    found = replace(found, candidates=sort_candidates(known.values()))
    return Evidence(found, tuple(hangs), has_log=log is not None)
