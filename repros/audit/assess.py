"""Comparison of a subject with the catalogue. Pure: equal arguments give equal assessments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.audit.assessment import Assessment, Condition, Status
from repros.audit.evidence_summary import group_by_repro, summarise_evidence
from repros.audit.subject import Subject
from repros.audit.unaffected import find_unaffected
from repros.evidence import Evidence
from repros.model import Outcome, Repro, Role, Variant
from repros.model.affected import AnyOf, Overlap, Term, all_overlap

_STATUSES = {
    Overlap.ALL: Status.AFFECTED,
    Overlap.SOME: Status.POSSIBLE,
    Overlap.NONE: Status.CLEAR,
    Overlap.UNKNOWN: Status.UNKNOWN,
}


def assess(repros: Iterable[Repro], subject: Subject, evidence: Evidence) -> Iterator[Assessment]:
    """Yield an assessment for every repro, in the catalogue's order."""
    measured = group_by_repro(evidence)
    for repro in repros:
        conditions = [*repro.affected, *_present_packages(repro)]
        answers = [(condition, condition.evaluate(partial(_compare, subject))) for condition in conditions]
        status = _STATUSES[all_overlap(overlap for _, overlap in answers)]
        unaffected = find_unaffected(repro.affected, subject)
        yield Assessment(
            repro=repro,
            status=status,
            conditions=tuple(_explanation(answers, status, subject)),
            fixed=unaffected.newer,
            unaffected=unaffected.older,
            workarounds=tuple(_usable_workarounds(repro, subject)),
            exceptions=tuple(_exceptions(repro, status, subject)),
            evidence=summarise_evidence(repro, subject, measured.get(repro.id, {})),
        )


def _present_packages(repro: Repro) -> Iterator[AnyOf]:
    """Yield a condition for each package that the failure is in and that no range of its own requires.

    The repro's own requirement says from which release on the failure of such a package is documented.
    """
    with_range = {canonicalize_name(condition.only.name) for condition in repro.affected if condition.only}
    for package in repro.packages:
        if canonicalize_name(package) not in with_range:
            own = [r.specifier for r in repro.requires if canonicalize_name(r.name) == canonicalize_name(package)]
            yield AnyOf((Term(_requirement(f"{package}{own[0] if own else ''}")),))


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


def _explanation(answers: Iterable[tuple[AnyOf, Overlap]], status: Status, subject: Subject) -> Iterator[Condition]:
    """Yield the terms that explain a status, of the conditions that decide it.

    That a package is there explains nothing where a range of it does.
    """
    deciding = {Status.CLEAR: {Overlap.NONE}, Status.UNKNOWN: {Overlap.UNKNOWN}}.get(status, {*Overlap})
    explained: set[str] = set()
    for condition, overlap in answers:
        for term in condition.terms if overlap in deciding else ():
            if term.evaluate(partial(_compare, subject)) is overlap:
                if not term.requirement.specifier and term.package in explained:
                    continue
                explained.add(term.package)
                package = subject.find_name(term.package)
                constraints = subject.constraints[package] if package else ()
                found = _compare(subject, term)
                yield Condition(term.requirement, found, package, constraints, negated=term.negated)


def _exceptions(repro: Repro, status: Status, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that fail where the failure is documented not to occur, or do not where it is."""
    documented = Overlap.ALL if status is Status.AFFECTED else Overlap.NONE
    if status not in {Status.AFFECTED, Status.CLEAR}:
        return
    compare = partial(_compare, subject)
    present = all_overlap(condition.evaluate(compare) for condition in _present_packages(repro))
    for variant in repro.variants:
        needed = all_overlap(_compare(subject, Term(required)) for required in variant.requires)
        own = all_overlap([present, *(condition.evaluate(compare) for condition in variant.affected)])
        differs = variant.outcome is Outcome.FAILS and variant.affected != repro.affected
        if differs and needed is Overlap.ALL and own is documented.opposite:
            yield variant


def _usable_workarounds(repro: Repro, subject: Subject) -> Iterator[Variant]:
    """Yield the variants that are a fix or a workaround and whose requirements the subject may meet."""
    for variant in repro.variants:
        overlaps = {_compare(subject, Term(required)) for required in variant.requires}
        if variant.role is Role.WORKS and Overlap.NONE not in overlaps:
            yield variant
