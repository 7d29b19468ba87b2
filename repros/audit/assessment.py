"""An assessment: whether one documented failure concerns a subject, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement

from repros.audit.evidence_summary import EvidenceSummary
from repros.audit.subject import Constraint
from repros.model import Repro, Variant
from repros.model.affected import Overlap
from repros.model.requirements import format_requirement

_MOST_CONSTRAINTS = 8
"""Constraints of one package that a sentence names."""
_VERBS = {
    Overlap.ALL: "is in",
    Overlap.SOME: "may be in",
    Overlap.NONE: "is not in",
    Overlap.UNKNOWN: "cannot be compared with",
}


class Status(StrEnum):
    """Whether a failure concerns a subject."""

    AFFECTED = "affected"
    """Every condition holds."""
    POSSIBLE = "possible"
    """Some of the allowed releases are affected: it depends on which one is installed."""
    UNKNOWN = "unknown"
    """The subject does not list a package of the condition, or not its version."""
    CLEAR = "clear"
    """A condition does not hold."""


@dataclass(frozen=True)
class Condition:
    """A version range that a failure depends on, compared with the subject's constraints."""

    requirement: Requirement
    overlap: Overlap
    package: str | None
    """The package's name in the subject; None if the subject does not list it."""
    constraints: tuple[Constraint, ...]
    negated: bool = False
    """Whether the failure depends on the absence of these releases."""

    def __str__(self) -> str:
        """Return `lightning 2.1.3 (requirements.txt:3) is in lightning>=2.1,<2.4`."""
        if self.package is None:
            without = f", and {format_requirement(self.requirement)} would be free of it" if self.negated else ""
            return f"{self.requirement.name} is not listed{without}"
        affected = self.requirement.specifier
        relevant = [
            constraint for constraint in self.constraints if constraint.overlap_with(affected) is not Overlap.NONE
        ]
        shown = [*dict.fromkeys(map(str, relevant or self.constraints))]
        more = f" or {len(shown) - _MOST_CONSTRAINTS} more" if len(shown) > _MOST_CONSTRAINTS else ""
        found = " or ".join(shown[:_MOST_CONSTRAINTS]) + more
        if not affected:
            return f"{self.package} {found}: every release"
        return f"{self.package} {found} {_VERBS[self.overlap]} {format_requirement(self.requirement)}"


@dataclass(frozen=True)
class Assessment:
    """One failure, compared with one subject."""

    repro: Repro
    status: Status
    conditions: tuple[Condition, ...]
    """The conditions that explain the status."""
    fixed: tuple[str, ...]
    """Releases without the failure above the subject's, the nearest first, each sufficient alone: `lightning>=2.4`."""
    unaffected: tuple[str, ...]
    """Older releases without the failure, such as those before it came."""
    workarounds: tuple[Variant, ...]
    """Fixes and workarounds whose requirements the subject may meet."""
    exceptions: tuple[Variant, ...]
    """Of an affected subject, the failing variants that do not fail on it; of an unaffected one, those that do."""
    evidence: EvidenceSummary
