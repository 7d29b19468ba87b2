"""An assessment: whether one documented failure affects a subject, and the conditions that explain it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement

from repros.advise.audit.evidence_summary import EvidenceSummary
from repros.advise.audit.subject import Constraint
from repros.model import Repro, Variant
from repros.model.affected import Overlap
from repros.model.packages import format_requirement
from repros.model.ranges import Releases
from repros.model.unmeasured import not_measured

_MOST_CONSTRAINTS = 8
"""Constraints of one package that a sentence names."""
_VERBS = {
    Overlap.ALL: "is in",
    Overlap.SOME: "may be in",
    Overlap.NONE: "is not in",
    Overlap.UNKNOWN: "cannot be compared with",
}


class AuditStatus(StrEnum):
    """Whether a failure affects a subject."""

    AFFECTED = "affected"
    """Every condition is met."""
    POSSIBLE = "possible"
    """Some of the allowed releases are affected: it depends on the installed one."""
    UNKNOWN = "unknown"
    """The subject lacks a package of a condition, or its version, or no measurement covers its releases."""
    CLEAR = "clear"
    """A condition is not met, with measured releases, or with releases that lack the affected feature."""


class Aspect(StrEnum):
    """The subject of a version range."""

    AFFECTED = "affected"
    """The releases with the failure, as measured."""
    EXISTS = "exists"
    """The releases with the affected feature, as documented upstream."""
    NEEDED = "needed"
    """The releases that the script requires; others were not measured."""


@dataclass(frozen=True)
class Condition:
    """A version range that a failure depends on, compared with the subject's constraints."""

    requirement: Requirement
    overlap: Overlap
    package: str | None
    """The distribution in the subject; None if the subject does not list it."""
    constraints: tuple[Constraint, ...]
    negated: bool = False
    """Whether the failure depends on the absence of these releases."""
    aspect: Aspect = Aspect.AFFECTED
    source: str | None = None
    """The https:// address that documents the range; None if it was measured."""

    def __str__(self) -> str:
        """Return `lightning 2.1.3 (requirements.txt:3) is in lightning>=2.1,<2.4`."""
        if self.package is None:
            without = f", and {format_requirement(self.requirement)} would be unaffected" if self.negated else ""
            return f"{self.requirement.name} is not listed{without}"
        listed = f"{self.package} {self._constraints_text()}"
        range_ = format_requirement(self.requirement)
        if not self.requirement.specifier:
            return f"{listed}: every release"
        if self.aspect is Aspect.NEEDED:
            return not_measured(self.requirement, self.overlap, listed)
        where = f"{listed} {_VERBS[self.overlap]} {range_}"
        return f"{where}, the releases with the affected feature ({self.source})" if self.source else where

    def _constraints_text(self) -> str:
        """Return the relevant constraints: those that overlap the range, or, of a script's requirements, the others."""
        overlaps = {constraint: constraint.overlap_with(self.requirement.specifier) for constraint in self.constraints}
        irrelevant = Overlap.ALL if self.aspect is Aspect.NEEDED else Overlap.NONE
        relevant = [constraint for constraint, overlap in overlaps.items() if overlap is not irrelevant]
        shown = [*dict.fromkeys(map(str, relevant or self.constraints))]
        more = f" or {len(shown) - _MOST_CONSTRAINTS} more" if len(shown) > _MOST_CONSTRAINTS else ""
        return " or ".join(shown[:_MOST_CONSTRAINTS]) + more


@dataclass(frozen=True)
class Assessment:
    """One failure, compared with one subject."""

    repro: Repro
    status: AuditStatus
    conditions: tuple[Condition, ...]
    """The conditions that explain the status."""
    newer: tuple[tuple[Releases, ...], ...]
    """Newer releases without the failure, the nearest first. Each entry suffices alone; those in it belong together."""
    older: tuple[tuple[Releases, ...], ...]
    """Older releases without the failure, such as those before its introduction."""
    workarounds: tuple[Variant, ...]
    """Fixes and workarounds whose requirements the subject may meet."""
    exceptions: tuple[Variant, ...]
    """For an affected subject, the failing variants that do not fail on it; for an unaffected one, those that do."""
    evidence: EvidenceSummary

    @property
    def fixed(self) -> tuple[str, ...]:
        """The newer releases as text: `lightning>=2.4`, `accelerate>=1.13 with bitsandbytes>=0.48`."""
        return _texts(self.newer)

    @property
    def unaffected(self) -> tuple[str, ...]:
        """The older releases as text."""
        return _texts(self.older)


def _texts(alternatives: tuple[tuple[Releases, ...], ...]) -> tuple[str, ...]:
    return tuple(" with ".join(map(str, together)) for together in alternatives)
