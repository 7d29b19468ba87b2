"""Comparison of a subject with the catalogue. Pure: equal arguments give equal assessments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.audit.assessment import Aspect, Assessment, Condition, Status
from repros.audit.evidence_summary import group_by_repro, summarise_evidence
from repros.audit.subject import Constraint, Location, Subject
from repros.evidence import Evidence
from repros.model import Outcome, Repro, Variant
from repros.model.affected import AnyOf, Overlap, Term, all_overlap
from repros.model.requirements import format_requirement, intersection
from repros.model.unmeasured import Gap, existence, find_gaps, settle

_STATUSES = {
    Overlap.ALL: Status.AFFECTED,
    Overlap.SOME: Status.POSSIBLE,
    Overlap.NONE: Status.CLEAR,
    Overlap.UNKNOWN: Status.UNKNOWN,
}
Answers = list[tuple[AnyOf, Overlap]]
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def assess(repros: Iterable[Repro], subject: Subject, evidence: Evidence) -> Iterator[Assessment]:
    """Yield an assessment for every repro, in the catalogue's order."""
    measured = group_by_repro(evidence)
    for repro in repros:
        status, conditions = _judge(repro, subject)
        ranges = [_unaffected_ranges(condition) for condition in repro.affected]
        yield Assessment(
            repro=repro,
            status=status,
            conditions=conditions,
            fixed=tuple(_that_clear(repro, (text for above, _ in ranges for text in above))),
            unaffected=tuple(_that_clear(repro, (text for _, others in ranges for text in others))),
            workarounds=tuple(_usable_workarounds(repro, subject)),
            exceptions=tuple(_exceptions(repro, status, subject)),
            evidence=summarise_evidence(repro, subject, measured.get(repro.id, {})),
        )


def _judge(repro: Repro, subject: Subject) -> tuple[Status, tuple[Condition, ...]]:
    """Return whether a failure concerns a subject, and the conditions that explain it."""

    def answers(conditions: Iterable[AnyOf]) -> Answers:
        return [(condition, condition.evaluate(partial(_compare, subject))) for condition in conditions]

    affected = answers([*repro.affected, *_present_packages(repro)])
    exists = answers(existence(repro, repro.failing))
    absent = all_overlap(overlap for _, overlap in answers(map(_presence, repro.packages))) is Overlap.NONE
    found = all_overlap(overlap for _, overlap in (*affected, *exists))
    there = Overlap.NONE if absent else all_overlap(overlap for _, overlap in exists)
    gaps = find_gaps(repro, repro.failing, subject.meets)
    settled = settle(found, there, gaps)
    status = _STATUSES[settled]
    explained = [
        *(_explanation(affected, status, subject) if absent or there is not Overlap.NONE else ()),
        *(_explanation(_telling(exists, repro, subject), status, subject, Aspect.EXISTS, repro.exists_source)),
        *(_gap_conditions(gaps, subject) if settled is not found else ()),
    ]
    return status, tuple(explained)


def _telling(exists: Answers, repro: Repro, subject: Subject) -> Iterator[tuple[AnyOf, Overlap]]:
    """Yield the answers about what exists that say more than those about the affected ranges do."""
    for condition, overlap in exists:
        listed = any(subject.find_name(term.package) for term in condition.terms)
        if overlap is Overlap.NONE or (overlap is not Overlap.ALL and listed and condition not in repro.affected):
            yield condition, overlap


def _gap_conditions(gaps: Iterable[Gap], subject: Subject) -> Iterator[Condition]:
    """Yield a condition for each requirement of the script that the subject does not meet."""
    for gap in gaps:
        package = subject.find_name(canonicalize_name(gap.requirement.name))
        assert package is not None  # the releases of no other are known
        yield Condition(gap.requirement, gap.overlap, package, subject.constraints[package], aspect=Aspect.NEEDED)


def _that_clear(repro: Repro, texts: Iterable[str]) -> Iterator[str]:
    """Yield the ranges that are known to be free of a failure; without the releases that were not measured."""
    for text in texts:
        narrowed = [text, " with ".join(_narrow(repro, part) for part in text.split(" with "))]
        yield from [candidate for candidate in narrowed if _clears(repro, candidate)][:1]


def _narrow(repro: Repro, text: str) -> str:
    """Return the part of a range on which the script runs."""
    requirement = _requirement(text)
    name = canonicalize_name(requirement.name)
    needed = (needed.specifier for needed in repro.needs(repro.failing) if canonicalize_name(needed.name) == name)
    return format_requirement(_requirement(f"{requirement.name}{intersection([requirement.specifier, *needed])}"))


def _clears(repro: Repro, text: str) -> bool:
    """Return whether a failure does not concern a subject with the releases of a range and nothing else."""
    needed = map(_requirement, text.split(" with "))
    constraints = {r.name: (Constraint(str(r.specifier), Location(""), releases=r.specifier),) for r in needed}
    status, _ = _judge(repro, Subject("", constraints, complete=False))
    return status is Status.CLEAR


def _present_packages(repro: Repro) -> Iterator[AnyOf]:
    """Yield a condition for each package that the failure is in and that no range of its own requires."""
    with_range = {canonicalize_name(condition.only.name) for condition in repro.affected if condition.only}
    return (_presence(package) for package in repro.packages if canonicalize_name(package) not in with_range)


def _presence(package: str) -> AnyOf:
    """Return the condition that a package is there."""
    return AnyOf((Term(_requirement(package)),))


@cache
def _requirement(text: str) -> Requirement:
    return Requirement(text)


def _compare(subject: Subject, term: Term) -> Overlap:
    """Return how many of the subject's releases lie in a term's range.

    A package that would free the subject of a failure, and that it does not list, counts as absent: this errs towards
    a failure.
    """
    if term.negated and subject.find_name(term.package) is None:
        return Overlap.NONE
    return subject.overlap_with(term.package, term.requirement.specifier)


def _explanation(
    answers: Iterable[tuple[AnyOf, Overlap]],
    status: Status,
    subject: Subject,
    aspect: Aspect = Aspect.AFFECTED,
    source: str | None = None,
) -> Iterator[Condition]:
    """Yield the terms that explain a status, of the conditions that decide it."""
    deciding = {Status.CLEAR: {Overlap.NONE}, Status.UNKNOWN: {Overlap.UNKNOWN}}.get(status, {*Overlap})
    for condition, overlap in answers:
        for term in condition.terms if overlap in deciding else ():
            if term.evaluate(partial(_compare, subject)) is overlap:
                package = subject.find_name(term.package)
                constraints = subject.constraints[package] if package else ()
                found = _compare(subject, term)
                yield Condition(term.requirement, found, package, constraints, term.negated, aspect, source)


def _exceptions(repro: Repro, status: Status, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that fail where the failure is documented not to occur, or do not where it is."""
    documented = Overlap.ALL if status is Status.AFFECTED else Overlap.NONE
    if status not in {Status.AFFECTED, Status.CLEAR}:
        return
    compare = partial(_compare, subject)
    present = all_overlap(_presence(package).evaluate(compare) for package in repro.packages)
    for variant in repro.variants:
        if variant.outcome is not Outcome.FAILS or variant.affected == repro.affected:
            continue
        needed = all_overlap(_compare(subject, Term(required)) for required in repro.own_requirements(variant))
        own = all_overlap([present, *(condition.evaluate(compare) for condition in variant.affected)])
        measured = not find_gaps(repro, variant, subject.meets)
        if measured and needed is Overlap.ALL and own is documented.opposite:
            yield variant


def _unaffected_ranges(condition: AnyOf) -> tuple[list[str], list[str]]:
    """Return what contradicts a condition: the releases above its ranges, and others.

    Of alternatives, all must be contradicted: `accelerate>=1.13 with bitsandbytes>=0.48`.
    """
    sides = [_outside(term) for term in condition.terms]
    if len(sides) == 1:
        return sides[0]
    above = [above[0] for above, others in sides if above and not others]
    return ([" with ".join(above)] if len(above) == len(sides) else []), []


def _outside(term: Term) -> tuple[list[str], list[str]]:
    """Return the ranges outside a term's: those above it, and the others."""
    above: list[str] = []
    others: list[str] = []
    requirement = term.requirement
    if term.negated:
        return [format_requirement(requirement)], []
    for specifier in requirement.specifier:
        if operator := _OPPOSITE.get(specifier.operator):
            text = f"{requirement.name}{operator}{specifier.version}"
            (above if specifier.operator in {"<", "<="} else others).append(text)
    return above, sorted(others)


def _usable_workarounds(repro: Repro, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that pass and whose requirements the subject may meet."""
    for variant in repro.variants:
        overlaps = {_compare(subject, Term(required)) for required in repro.own_requirements(variant)}
        if variant.outcome is Outcome.PASSES and Overlap.NONE not in overlaps:
            yield variant
