"""Find the documented failures that a log shows: `repros match`.

The steps, each linear in the log's length: `log` decodes bytes into lines, `wrappers` removes the prefixes of lines,
`tracebacks` reads exception chains, `find` merges them into failures, `index` finds the signatures that they match, and
`candidates` decides how certain a match is. `pasted` searches a short log without exceptions for messages. `hints`
reads `match.toml`, which decides between repros with the same message. `text` and `json_format` present the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.match.affected import AffectedState
from repros.match.candidates import Candidate, Confidence, RuledOut, Sighting, find_candidates
from repros.match.failures import Failure, Link
from repros.match.find import find_failures
from repros.match.index import SignatureIndex
from repros.match.log import LogLines
from repros.match.pasted import find_messages
from repros.match.versions import find_versions
from repros.model import Repro

__all__ = [
    "AffectedState",
    "Candidate",
    "Confidence",
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
    """Repros whose message is in the log, but none of whose frames are."""
    failures: tuple[Failure, ...]
    """Every failure in the log, in its order."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log states, of the packages that the catalogue names."""
    notes: tuple[str, ...]
    """A sentence for each thing that was left out."""


def match_log(log: LogLines, repros: Iterable[Repro]) -> LogMatch:
    """Compare a log with the catalogue."""
    catalogue = tuple(repros)
    failures, notes = find_failures(log)
    packages = frozenset[str]().union(*(repro.named_packages for repro in catalogue))
    versions = find_versions(log, packages)
    index = SignatureIndex(catalogue)
    candidates, ruled_out = find_candidates(failures, index, versions, log)
    if not candidates and not ruled_out and log.is_short:
        messages = tuple(find_messages(log, index))
        candidates, ruled_out = find_candidates(messages, index, versions, log)
    return LogMatch(candidates, ruled_out, failures, versions, (*log.notes, *notes))
