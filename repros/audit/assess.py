"""Subject x catalogue -> findings. Pure: the same values give the same findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from repros.audit.measured import Measured, measured
from repros.audit.subject import Admits, Pick, Subject
from repros.evidence import Evidence
from repros.model import Outcome, Repro, Variant
from repros.model.requirements import format_requirement

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Status(StrEnum):
    """What a failure is to a subject."""

    AFFECTED = "affected"
    """Every condition holds."""
    POSSIBLE = "possible"
    """Some of the releases that are admitted are affected: it depends on what is installed in the end."""
    UNKNOWN = "unknown"
    """Cannot be told: a package of the condition is not named, or its version is not."""
    CLEAR = "clear"
    """A condition does not hold."""


@dataclass(frozen=True)
class Condition:
    """One package that a failure depends on, and what the subject says of it."""

    requirement: Requirement
    admits: Admits
    package: str | None
    """The name under which it is there."""
    picks: tuple[Pick, ...]

    def __str__(self) -> str:
        """Return `lightning 2.1.3 (requirements.txt:3) is in lightning>=2.1,<2.4`."""
        asked = format_requirement(self.requirement)
        if self.package is None:
            return f"{self.requirement.name} is not named"
        picks = [pick for pick in self.picks if pick.admits(self.requirement.specifier) is not Admits.NONE]
        found = " or ".join(_told(pick) for pick in picks or self.picks)
        if not self.requirement.specifier:
            return f"{self.package} {found}: every release"
        verb = {
            Admits.ALL: "is in",
            Admits.SOME: "may be in",
            Admits.NONE: "is not in",
            Admits.UNKNOWN: "cannot be held against",
        }[self.admits]
        return f"{self.package} {found} {verb} {asked}"


@dataclass(frozen=True)
class Finding:
    """One failure, against one subject."""

    repro: Repro
    status: Status
    conditions: tuple[Condition, ...]
    """Those that explain the status."""
    fixed: tuple[str, ...]
    """Ranges that are free of it since it was fixed, each alone enough: `lightning>=2.4`."""
    free: tuple[str, ...]
    """Other ranges that are free of it, such as what came before."""
    workarounds: tuple[Variant, ...]
    measured: Measured


def assess(repros: Iterable[Repro], subject: Subject, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for every repro, in the catalogue's order."""
    for repro in repros:
        conditions = [_condition(requirement, subject) for requirement in _needed(repro)]
        status = _status(conditions)
        telling = [one for one in conditions if _explains(one, status)]
        ends = [_beyond(requirement) for requirement in repro.affected]
        yield Finding(
            repro=repro,
            status=status,
            conditions=tuple(telling),
            fixed=tuple(text for fixed, _ in ends for text in fixed),
            free=tuple(text for _, free in ends for text in free),
            workarounds=tuple(_workarounds(repro, subject)),
            measured=measured(repro, subject, evidence),
        )


def _needed(repro: Repro) -> list[Requirement]:
    """Return all that has to hold: the affected ranges, and the presence of each package that the failure is in.

    Where a package has no affected range, what the repro requires of it is how far down it is documented.
    """
    ranged = {canonicalize_name(requirement.name) for requirement in repro.affected}
    needed = list(repro.affected)
    for package in repro.packages:
        if canonicalize_name(package) not in ranged:
            own = [r.specifier for r in repro.requires if canonicalize_name(r.name) == canonicalize_name(package)]
            needed.append(Requirement(f"{package}{own[0] if own else ''}"))
    return needed


def _condition(requirement: Requirement, subject: Subject) -> Condition:
    package = subject.named(requirement.name)
    admits = subject.admits(requirement.name, requirement.specifier)
    return Condition(requirement, admits, package, subject.picks[package] if package else ())


def _status(conditions: Iterable[Condition]) -> Status:
    """Evaluate the conjunction whole: one condition that does not hold clears it, whatever is unknown of the others."""
    found = {condition.admits for condition in conditions}
    if Admits.NONE in found:
        return Status.CLEAR
    if Admits.UNKNOWN in found:
        return Status.UNKNOWN
    return Status.POSSIBLE if Admits.SOME in found else Status.AFFECTED


def _explains(condition: Condition, status: Status) -> bool:
    if status is Status.CLEAR:
        return condition.admits is Admits.NONE
    return condition.admits is Admits.UNKNOWN if status is Status.UNKNOWN else True


def _beyond(requirement: Requirement) -> tuple[list[str], list[str]]:
    """Return the ranges outside an affected one: those above it, and the others."""
    fixed: list[str] = []
    free: list[str] = []
    for specifier in requirement.specifier:
        if operator := _OPPOSITE.get(specifier.operator):
            text = f"{requirement.name}{operator}{specifier.version}"
            (fixed if specifier.operator in {"<", "<="} else free).append(text)
    return fixed, sorted(free)


def _workarounds(repro: Repro, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that pass, as far as the subject may hold what they require."""
    for variant in repro.variants:
        unmet = any(_admits(subject, requirement) is Admits.NONE for requirement in variant.requires)
        if variant.outcome is Outcome.PASSES and not unmet:
            yield variant


def _admits(subject: Subject, requirement: Requirement) -> Admits:
    return subject.admits(requirement.name, SpecifierSet(str(requirement.specifier)))


def _told(pick: Pick) -> str:
    notes = ", ".join(filter(None, [str(pick.place), f"where {pick.marker}" if pick.marker else ""]))
    return f"{pick.said} ({notes})" if notes else pick.said
