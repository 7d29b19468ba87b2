"""Find the documented failures that a log shows: `repros match`.

The steps, each linear in the log's length: `log` decodes bytes into lines, `wrappers` removes the prefixes of lines,
`tracebacks` reads exception chains, `find` merges them into failures, `index` finds the signatures that they match, and
`sightings` weighs what the stack says and names the line that contradicts a repro, and `candidates` decides how certain
a match is. `pasted` searches for messages outside of exceptions. `hints` reads `match.toml`, which decides between
repros with the same message. `text` and `json_format` present the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.diagnose.match.affected import AffectedState
from repros.diagnose.match.candidates import Candidate, Confidence, find_candidates, sort_candidates
from repros.diagnose.match.failures import Failure, Link
from repros.diagnose.match.find import find_failures
from repros.diagnose.match.index import SignatureIndex
from repros.diagnose.match.log import LogLines
from repros.diagnose.match.pasted import find_messages
from repros.diagnose.match.sightings import Against, Contradiction, RuledOut, Sighting
from repros.diagnose.match.versions import find_versions, installed_versions
from repros.model import Environment, Repro

__all__ = [
    "AffectedState",
    "Against",
    "Candidate",
    "Confidence",
    "Contradiction",
    "Failure",
    "Link",
    "LogMatch",
    "RuledOut",
    "Sighting",
    "SignatureIndex",
    "match_log",
]


@dataclass(frozen=True)
class LogMatch:
    """What a log shows."""

    candidates: tuple[Candidate, ...]
    """The most certain first; empty: no known repro."""
    ruled_out: tuple[RuledOut, ...]
    """Repros whose message is in the log, each with the line that contradicts it."""
    failures: tuple[Failure, ...]
    """Every failure in the log, in its order."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log states, or else those of the environment, of the packages that the catalogue names."""
    notes: tuple[str, ...]
    """A sentence for each thing that was left out."""


def match_log(log: LogLines, repros: Iterable[Repro], environment: Environment | None = None) -> LogMatch:
    """Compare a log with the catalogue.

    Args:
        log: the log.
        repros: the catalogue.
        environment: where the log's program runs: it has the versions that the log does not state.
    """
    catalogue = tuple(repros)
    index = SignatureIndex(catalogue)
    failures, notes = find_failures(log, index.ids_of)
    packages = frozenset[str]().union(*(repro.named_packages for repro in catalogue))
    stated = find_versions(log, packages)
    versions = {**(installed_versions(environment, packages) if environment else {}), **stated}
    if environment and versions.keys() - stated.keys():
        notes += (f"The versions that the log does not state are those of {environment.name}.",)
    candidates, ruled_out = find_candidates(failures, index, versions, log)
    judged = {candidate.repro.id for candidate in candidates} | {out.entry.repro.id for out in ruled_out}
    messages = tuple(find_messages(log, index, judged))
    if messages:
        more, out = find_candidates(messages, index, versions, log)
        candidates = sort_candidates((*candidates, *(found for found in more if found.repro.id not in judged)))
        ruled_out += tuple(found for found in out if found.entry.repro.id not in judged)
    return LogMatch(candidates, ruled_out, failures, versions, (*log.notes, *notes))
