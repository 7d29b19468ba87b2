"""Compare a subject with the catalogue, without side effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.advise.audit.assessment import Aspect, Assessment, AuditStatus, Condition
from repros.advise.audit.evidence_summary import group_by_repro, summarise_evidence
from repros.advise.audit.subject import Constraint, Subject
from repros.engine.evidence import Evidence
from repros.model import ExpectedOutcome, Repro, Role, Variant
from repros.model.affected import AnyOf, Compare, Overlap, Term, all_overlap, packages_of
from repros.model.ranges import FIRST, Interval, Releases, intervals, unaffected_releases
from repros.model.unmeasured import UnmetRequirement, existence, find_unmet, settle

_STATUSES = {
    Overlap.ALL: AuditStatus.AFFECTED,
    Overlap.SOME: AuditStatus.POSSIBLE,
    Overlap.NONE: AuditStatus.CLEAR,
    Overlap.UNKNOWN: AuditStatus.UNKNOWN,
}
Evaluated = list[tuple[AnyOf, Overlap]]


def assess(repros: Iterable[Repro], subject: Subject, evidence: Evidence) -> Iterator[Assessment]:
    """Yield an assessment of each repro, in the catalogue's order."""
    measured = group_by_repro(evidence)
    for repro in repros:
        status, conditions = judge(repro, subject)
        affected = (*repro.affected, *existence(repro, repro.failing))
        unaffected = find_unaffected(affected, _possible(repro), subject)
        yield Assessment(
            repro=repro,
            status=status,
            conditions=conditions,
            newer=unaffected.newer,
            older=unaffected.older,
            workarounds=tuple(_usable_workarounds(repro, subject)),
            exceptions=tuple(_exceptions(repro, status, subject)),
            evidence=summarise_evidence(repro, subject, measured.get(repro.id, {})),
        )


def judge(repro: Repro, subject: Subject) -> tuple[AuditStatus, tuple[Condition, ...]]:
    """Return whether a failure affects a subject, and the conditions that explain it."""

    def evaluate(conditions: Iterable[AnyOf]) -> Evaluated:
        return [(condition, _evaluate(condition, subject)) for condition in conditions]

    affected = evaluate([*repro.affected, *_present_packages(repro)])
    exists = evaluate(existence(repro, repro.failing))
    absent = all_overlap(overlap for _, overlap in evaluate(map(_presence, repro.packages))) is Overlap.NONE
    documented = all_overlap(overlap for _, overlap in (*affected, *exists))
    there = Overlap.NONE if absent else all_overlap(overlap for _, overlap in exists)
    unmet = find_unmet(repro, repro.failing, subject.meets)
    settled = settle(documented, there, unmet)
    status = _STATUSES[settled]
    explained = [
        *(_explanation(affected, status, subject) if absent or there is not Overlap.NONE else ()),
        *(_explanation(_informative(exists, repro, subject), status, subject, Aspect.EXISTS, repro.exists_source)),
        *(_unmet_conditions(unmet, subject) if settled is not documented else ()),
    ]
    return status, tuple(explained)


def _informative(exists: Evaluated, repro: Repro, subject: Subject) -> Iterator[tuple[AnyOf, Overlap]]:
    """Yield the conditions on the existence of the affected feature that the affected ranges do not imply."""
    for condition, overlap in exists:
        listed = any(subject.find_name(term.package) for term in condition.terms)
        if overlap is Overlap.NONE or (overlap is not Overlap.ALL and listed and condition not in repro.affected):
            yield condition, overlap


def _unmet_conditions(unmet: Iterable[UnmetRequirement], subject: Subject) -> Iterator[Condition]:
    """Yield a condition for each requirement of the script that the subject does not meet."""
    for requirement in (one.requirement for one in unmet):
        for name in subject.find_names(canonicalize_name(requirement.name)):
            constraints = subject.constraints[name]
            overlap = subject.overlap_of(constraints, requirement.specifier)
            if overlap is not Overlap.ALL:
                yield Condition(requirement, overlap, name, constraints, aspect=Aspect.NEEDED)


def _possible(repro: Repro) -> Iterator[AnyOf]:
    """Yield the conditions under which releases may have a failure: affected releases, and unmeasured ones.

    The script cannot run on a release outside of its requirements. Such a release is unaffected only if it lacks the
    affected feature.
    """
    needs = [Term(needed, negated=True) for needed in repro.needs(repro.failing) if needed.specifier]
    for condition in repro.affected:
        named = packages_of([condition])
        yield AnyOf((*condition.terms, *(term for term in needs if term.package in named)))
    yield from existence(repro, repro.failing)


def _present_packages(repro: Repro) -> Iterator[AnyOf]:
    """Yield a condition for each package of the failure without an affected range."""
    with_range = {canonicalize_name(condition.only.name) for condition in repro.affected if condition.only}
    return (_presence(package) for package in repro.packages if canonicalize_name(package) not in with_range)


def _presence(package: str) -> AnyOf:
    """Return the condition that a package is present."""
    return AnyOf((Term(_requirement(package)),))


@cache
def _requirement(text: str) -> Requirement:
    return Requirement(text)


def _evaluate(condition: AnyOf, subject: Subject) -> Overlap:
    return condition.evaluate(_comparison(condition, subject))


def _comparison(condition: AnyOf, subject: Subject) -> Compare:
    return partial(_compare, subject, alone=len(condition.terms) == 1)


def _compare(subject: Subject, term: Term, *, alone: bool = False) -> Overlap:
    """Return the overlap of the subject's releases with a term's range.

    An unlisted package whose presence would avoid the failure counts as absent: this errs on the side of a report. As
    one of several alternatives it makes the failure possible only: a program without bitsandbytes has no 8-bit model,
    whatever the script has in its place.

    Args:
        subject: the subject.
        term: the term.
        alone: whether it is the only term of its condition.
    """
    if term.negated and subject.find_name(term.package) is None:
        return Overlap.NONE if alone else Overlap.SOME
    overlap = subject.overlap_with(term.package, term.requirement.specifier)
    if overlap is Overlap.SOME and subject.has_pins_by_marker(term.package):
        pins = subject.constraints_on(term.package)
        holds = Overlap.NONE if term.negated else Overlap.ALL  # somewhere, which suffices
        return holds if holds in {pin.overlap_with(term.requirement.specifier) for pin in pins} else overlap
    return overlap


def _compare_names(subject: Subject, term: Term) -> Iterator[tuple[str | None, tuple[Constraint, ...], Overlap]]:
    """Yield each distribution of a term's package in the subject, with its constraints and their overlap.

    The presence of the package is yielded once. None represents an unlisted package.
    """
    names = subject.find_names(term.package)
    if not names:
        yield None, (), _compare(subject, term)
    for name in names if term.requirement.specifier else names[:1]:
        constraints = subject.constraints[name]
        yield name, constraints, subject.overlap_of(constraints, term.requirement.specifier)


def _explanation(
    evaluated: Iterable[tuple[AnyOf, Overlap]],
    status: AuditStatus,
    subject: Subject,
    aspect: Aspect = Aspect.AFFECTED,
    source: str | None = None,
) -> Iterator[Condition]:
    """Yield the terms that explain a status, of the conditions that decide it.

    The presence of a package is omitted if a range of it explains the status.
    """
    deciding = {AuditStatus.CLEAR: {Overlap.NONE}, AuditStatus.UNKNOWN: {Overlap.UNKNOWN}}.get(status, {*Overlap})
    explained: set[str] = set()
    for condition, overlap in evaluated:
        for term in condition.terms if overlap in deciding else ():
            if term.evaluate(_comparison(condition, subject)) is overlap:
                if not term.requirement.specifier and term.package in explained:
                    continue
                explained.add(term.package)
                yield from (
                    Condition(term.requirement, name_overlap, name, constraints, term.negated, aspect, source)
                    for name, constraints, name_overlap in _compare_names(subject, term)
                )


def _exceptions(repro: Repro, status: AuditStatus, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that fail on unaffected releases, or do not fail on affected ones."""
    documented = Overlap.ALL if status is AuditStatus.AFFECTED else Overlap.NONE
    if status not in {AuditStatus.AFFECTED, AuditStatus.CLEAR}:
        return
    present = all_overlap(_evaluate(_presence(package), subject) for package in repro.packages)
    for variant in repro.variants:
        if variant.outcome is not ExpectedOutcome.FAILS or variant.affected == repro.affected:
            continue
        needed = all_overlap(_compare(subject, Term(required)) for required in repro.own_requirements(variant))
        own = all_overlap([present, *(_evaluate(condition, subject) for condition in variant.affected)])
        measured = not find_unmet(repro, variant, subject.meets)
        if measured and needed is Overlap.ALL and own is documented.opposite:
            yield variant


def _usable_workarounds(repro: Repro, subject: Subject) -> Iterator[Variant]:
    """Yield the fixes and workarounds whose requirements the subject may meet."""
    for variant in repro.variants:
        overlaps = {_compare(subject, Term(required)) for required in repro.own_requirements(variant)}
        if variant.role is Role.WORKS and Overlap.NONE not in overlaps:
            yield variant


class Unaffected(NamedTuple):
    """Releases without a failure. Each entry alone suffices; it may combine releases of several packages."""

    newer: tuple[tuple[Releases, ...], ...]
    """Above the lowest affected release that the subject allows, the nearest first: `lightning>=2.5.3`."""
    older: tuple[tuple[Releases, ...], ...]
    """Older releases: `lightning>=2.0.8,<2.1`."""


def find_unaffected(affected: Iterable[AnyOf], possible: Iterable[AnyOf], subject: Subject) -> Unaffected:
    """Return the releases that are known to be unaffected, newer and older than the subject's.

    Args:
        affected: the conditions under which releases have the failure.
        possible: the conditions under which releases may have it, which include `affected`.
        subject: the subject.
    """
    unaffected = unaffected_releases(possible)
    free: dict[str, list[Interval]] = {releases.package: [] for together in unaffected for releases in together}
    for releases in (releases for together in unaffected_releases(affected) for releases in together):
        free.setdefault(releases.package, []).append(releases.interval)
    lowest = {package: _lowest_affected(package, known, subject) for package, known in free.items()}
    newer: list[tuple[Releases, ...]] = []
    older: list[tuple[Releases, ...]] = []
    for together in unaffected:
        is_older = any(_ends_below(releases, lowest[releases.package]) for releases in together)
        (older if is_older else newer).append(together)
    return Unaffected(tuple(newer), tuple(older))


def _ends_below(releases: Releases, version: Version) -> bool:
    return releases.interval.end is not None and releases.interval.end <= version


def _lowest_affected(package: str, free: Sequence[Interval], subject: Subject) -> Version:
    """Return the lowest affected version of a package that the subject allows, or else the lowest allowed version.

    All versions of an unlisted package are allowed.
    """
    constraints = subject.constraints_on(package)
    pins = {constraint.version for constraint in constraints if constraint.version is not None}
    ranges = {constraint.releases or SpecifierSet() for constraint in constraints if constraint.version is None}
    if not constraints:
        ranges = {SpecifierSet()}
    allowed = [interval for releases in ranges for interval in _intervals(releases)]
    starts = [*pins, *(interval.start for interval in allowed)]
    # The lowest affected version is the start of an allowed interval or the end of an unaffected one.
    ends = [end for end in (interval.end for interval in free) if end and any(end in interval for interval in allowed)]
    affected = [version for version in (*starts, *ends) if not any(version in interval for interval in free)]
    return min(affected, default=min(starts, default=FIRST))


@cache
def _intervals(releases: SpecifierSet) -> tuple[Interval, ...]:
    return intervals(partial(releases.contains, prereleases=True), [releases])
