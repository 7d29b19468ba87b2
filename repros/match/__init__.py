"""Reads a log and says which documented failures it shows: `repros match`.

reading -> wrappers -> tracebacks -> find -> catalogue -> candidates: bytes, lines, lines by writer, chains of
exceptions, failures, what they bear, and what that means. Each step is linear in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from repros.match.affected import State
from repros.match.candidates import Candidate, Confidence, RuledOut, Sighting, candidates
from repros.match.failures import Failure, Link
from repros.match.find import find
from repros.match.index import SignatureIndex
from repros.match.reading import Lines
from repros.match.versions import versions
from repros.model import Repro

__all__ = [
    "Candidate",
    "Confidence",
    "Failure",
    "Link",
    "Match",
    "RuledOut",
    "Sighting",
    "SignatureIndex",
    "State",
    "match",
]


@dataclass(frozen=True)
class Match:
    """What a log shows."""

    candidates: tuple[Candidate, ...]
    """The surest first; empty: no known repro."""
    ruled_out: tuple[RuledOut, ...]
    """Repros that have only the message in common with the log."""
    failures: tuple[Failure, ...]
    """Every failure in the log, in its order."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log tells, of the packages that the catalogue speaks of."""
    notes: tuple[str, ...]
    """A sentence for each thing that was left out."""


def match(log: Lines, repros: Iterable[Repro]) -> Match:
    """Hold a log against the catalogue."""
    catalogue = tuple(repros)
    failures, note = find(log)
    told = versions(log, _packages(catalogue))
    found, ruled_out = candidates(failures, SignatureIndex(catalogue), told)
    return Match(found, ruled_out, failures, told, (*log.notes, *note))


def _packages(repros: Iterable[Repro]) -> set[str]:
    """Return the packages that ranges speak of or scripts import."""
    return {
        canonicalize_name(requirement.name)
        for repro in repros
        for requirements in (
            repro.affected,
            repro.requires,
            repro.dependencies,
            *(variant.affected for variant in repro.variants),
        )
        for requirement in requirements
    }
