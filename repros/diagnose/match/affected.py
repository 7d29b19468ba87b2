"""Compare the versions that a log states with the affected releases of a repro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from repros.model import Repro, Variant
from repros.model.affected import AnyOf, Overlap, Term, evaluate, packages_of
from repros.model.packages import canonical_name
from repros.model.unmeasured import UnmetRequirement, existence, find_unmet, settle

if TYPE_CHECKING:
    from packaging.requirements import Requirement


class AffectedState(StrEnum):
    """Whether the versions in a log have the failure."""

    AFFECTED = "affected"
    UNKNOWN = "unknown"
    NOT_AFFECTED = "not affected"

    @property
    def order(self) -> int:
        """Position among the states: affected first."""
        return list(AffectedState).index(self)


@dataclass(frozen=True)
class AffectedCheck:
    """The state, and the ranges and versions that determine it."""

    state: AffectedState
    ranges: tuple[AnyOf, ...]
    """The failure is expected if all of them apply; empty: every release is affected."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log states for packages of the ranges."""
    missing: tuple[str, ...]
    """Packages of the ranges whose version the log does not state."""
    affected_variants: tuple[str, ...] = ()
    """If these versions are not affected: variants with the same message for which they are."""
    all_versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The versions that the log states for any package."""
    unmet: tuple[UnmetRequirement, ...] = ()
    """The script's requirements that these versions do not meet, if they are why the state is unknown."""
    exists: tuple[AnyOf, ...] = ()
    """The releases that have the affected feature, if these versions are unaffected because they lack it."""

    def allows(self, repro: Repro, variant: Variant) -> bool:
        """Whether the versions that the log states meet the requirements that a variant adds to its repro's."""
        conditions = [AnyOf((Term(requirement),)) for requirement in repro.own_requirements(variant)]
        return _overlap(conditions, self.all_versions) is not Overlap.NONE


def check_affected(repro: Repro, variants: Iterable[Variant], versions: Mapping[str, tuple[str, ...]]) -> AffectedCheck:
    """Compare versions with a repro's ranges.

    Args:
        repro: the repro.
        variants: the variants with the failure in the log. If `failing` is among them, it decides.
        versions: the versions in the log; if it has several of one package, they must agree.
    """
    shown = sorted(variants, key=lambda variant: variant.name != "failing") or [repro.failing]
    ranges = shown[0].affected
    exists, unmet = existence(repro, shown[0]), find_unmet(repro, shown[0], partial(_met, versions))
    affected, there = _overlap(ranges, versions), _overlap(exists, versions)
    settled = settle(affected, there, unmet)
    state = _STATES.get(settled, AffectedState.UNKNOWN)
    others = [
        variant.name
        for variant in shown[1:]
        if variant.affected != ranges and _overlap(variant.affected, versions) is Overlap.ALL
    ]
    names = packages_of((*ranges, *exists))
    return AffectedCheck(
        state,
        ranges,
        {name: versions[name] for name in names if name in versions},
        tuple(name for name in packages_of(ranges) if name not in versions),
        tuple(others) if state is AffectedState.NOT_AFFECTED else (),
        versions,
        unmet if settled is not affected and state is AffectedState.UNKNOWN else (),
        exists if there is Overlap.NONE else (),
    )


def _overlap(conditions: Iterable[AnyOf], versions: Mapping[str, tuple[str, ...]]) -> Overlap:
    """Return whether the versions meet all conditions; a package without a version in the log counts as unknown."""

    def compare(term: Term) -> Overlap:
        answers = _answers(term.requirement, versions)
        return _ANSWERED.get(frozenset(answers), Overlap.UNKNOWN)

    return evaluate(conditions, compare)


def _met(versions: Mapping[str, tuple[str, ...]], requirement: Requirement) -> Overlap:
    """Return how many of a package's versions meet a requirement; a version that the log omits counts as met."""
    answers = _answers(requirement, versions)
    return Overlap.SOME if len(answers) > 1 else _ANSWERED.get(frozenset(answers), Overlap.ALL)


def _answers(requirement: Requirement, versions: Mapping[str, tuple[str, ...]]) -> set[bool]:
    """Return whether the versions of a package that the log states are in a range: true, false, both or neither."""
    stated = versions.get(canonical_name(requirement.name), ())
    return {requirement.specifier.contains(version, prereleases=True) for version in stated}


_ANSWERED = {frozenset({True}): Overlap.ALL, frozenset({False}): Overlap.NONE}
_STATES = {Overlap.ALL: AffectedState.AFFECTED, Overlap.NONE: AffectedState.NOT_AFFECTED}
