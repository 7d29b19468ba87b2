"""Comparison of a subject with the catalogue. Pure: equal arguments give equal findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.audit.evidence_summary import summarise_evidence
from repros.audit.finding import Condition, Finding, Status
from repros.audit.overlap import Overlap
from repros.audit.subject import Subject
from repros.evidence import Evidence
from repros.model import Outcome, Repro, Variant

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def assess(repros: Iterable[Repro], subject: Subject, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for every repro, in the catalogue's order."""
    for repro in repros:
        conditions = [_evaluate(requirement, subject) for requirement in _required_ranges(repro)]
        status = _combine(conditions)
        ranges = [_unaffected_ranges(requirement) for requirement in repro.affected]
        yield Finding(
            repro=repro,
            status=status,
            conditions=tuple(one for one in conditions if _explains(one, status)),
            fixed=tuple(text for above, _ in ranges for text in above),
            unaffected=tuple(text for _, others in ranges for text in others),
            workarounds=tuple(_usable_workarounds(repro, subject)),
            evidence=summarise_evidence(repro, subject, evidence),
        )


def _required_ranges(repro: Repro) -> list[Requirement]:
    """Return what must hold for a failure: its affected ranges, and the presence of every package that it is in.

    For a package without an affected range, the repro's own requirement says from which release on it is documented.
    """
    with_range = {canonicalize_name(requirement.name) for requirement in repro.affected}
    ranges = list(repro.affected)
    for package in repro.packages:
        if canonicalize_name(package) not in with_range:
            own = [r.specifier for r in repro.requires if canonicalize_name(r.name) == canonicalize_name(package)]
            ranges.append(Requirement(f"{package}{own[0] if own else ''}"))
    return ranges


def _evaluate(requirement: Requirement, subject: Subject) -> Condition:
    package = subject.find_name(requirement.name)
    overlap = subject.overlap_with(requirement.name, requirement.specifier)
    return Condition(requirement, overlap, package, subject.constraints[package] if package else ())


def _combine(conditions: Iterable[Condition]) -> Status:
    """Return the status of a conjunction: one false condition clears it, even if others are unknown."""
    found = {condition.overlap for condition in conditions}
    if Overlap.NONE in found:
        return Status.CLEAR
    if Overlap.UNKNOWN in found:
        return Status.UNKNOWN
    return Status.POSSIBLE if Overlap.SOME in found else Status.AFFECTED


def _explains(condition: Condition, status: Status) -> bool:
    if status is Status.CLEAR:
        return condition.overlap is Overlap.NONE
    return condition.overlap is Overlap.UNKNOWN if status is Status.UNKNOWN else True


def _unaffected_ranges(requirement: Requirement) -> tuple[list[str], list[str]]:
    """Return the ranges outside an affected one: those above it, and the others."""
    above: list[str] = []
    others: list[str] = []
    for specifier in requirement.specifier:
        if operator := _OPPOSITE.get(specifier.operator):
            text = f"{requirement.name}{operator}{specifier.version}"
            (above if specifier.operator in {"<", "<="} else others).append(text)
    return above, sorted(others)


def _usable_workarounds(repro: Repro, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that pass and whose requirements the subject may meet."""
    for variant in repro.variants:
        overlaps = {subject.overlap_with(required.name, required.specifier) for required in variant.requires}
        if variant.outcome is Outcome.PASSES and Overlap.NONE not in overlaps:
            yield variant
