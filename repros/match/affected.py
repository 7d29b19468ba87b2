"""Compare the versions that a log states with the affected releases of a repro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from repros.model import Repro, Variant
from repros.model.affected import AnyOf, Overlap, Term, evaluate, packages_of


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
    """The state, and the ranges and versions that it follows from."""

    state: AffectedState
    ranges: tuple[AnyOf, ...]
    """The failure is expected if all of them hold; empty: every release is affected."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log states for packages of the ranges."""
    missing: tuple[str, ...]
    """Packages of the ranges whose version the log does not state."""
    affected_variants: tuple[str, ...] = ()
    """If these versions are not affected: variants with the same message for which they are."""
    all_versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The versions that the log states for any package."""

    def allows(self, variant: Variant) -> bool:
        """Whether the versions in the log, as far as it states them, meet the requirements of a variant."""
        conditions = [AnyOf((Term(requirement),)) for requirement in variant.requires]
        return _state(conditions, self.all_versions) is not AffectedState.NOT_AFFECTED


def check_affected(repro: Repro, variants: Iterable[Variant], versions: Mapping[str, tuple[str, ...]]) -> AffectedCheck:
    """Compare versions with a repro's ranges.

    Args:
        repro: the repro.
        variants: the variants that show the failure in the log. The failing one decides if it is among them.
        versions: the versions in the log; if it has several of one package, they must agree.
    """
    shown = sorted(variants, key=lambda variant: variant.name != "failing")
    ranges = shown[0].affected if shown else repro.affected
    state = _state(ranges, versions)
    others = [
        variant.name
        for variant in shown[1:]
        if variant.affected != ranges and _state(variant.affected, versions) is AffectedState.AFFECTED
    ]
    names = packages_of(ranges)
    return AffectedCheck(
        state,
        ranges,
        {name: versions[name] for name in names if name in versions},
        tuple(name for name in names if name not in versions),
        tuple(others) if state is AffectedState.NOT_AFFECTED else (),
        versions,
    )


def _state(conditions: Iterable[AnyOf], versions: Mapping[str, tuple[str, ...]]) -> AffectedState:
    """Return whether the versions meet all conditions; a package without a version in the log may be absent or not."""

    def compare(term: Term) -> Overlap:
        stated = versions.get(term.package, ())
        answers = {term.requirement.specifier.contains(version, prereleases=True) for version in stated}
        if len(answers) != 1:
            return Overlap.UNKNOWN
        return Overlap.ALL if True in answers else Overlap.NONE

    return _STATES.get(evaluate(conditions, compare), AffectedState.UNKNOWN)


_STATES = {Overlap.ALL: AffectedState.AFFECTED, Overlap.NONE: AffectedState.NOT_AFFECTED}
