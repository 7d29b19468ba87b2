"""Compare the versions that a log states with the affected releases of a repro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model import Repro, Variant


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
    ranges: tuple[Requirement, ...]
    """The failure is expected if all of them hold; empty: every release is affected."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions that the log states for packages of the ranges."""
    missing: tuple[str, ...]
    """Packages of the ranges whose version the log does not state."""
    affected_variants: tuple[str, ...] = ()
    """If these versions are not affected: variants with the same message for which they are."""


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
    names = dict.fromkeys(canonicalize_name(requirement.name) for requirement in ranges)
    return AffectedCheck(
        state,
        ranges,
        {name: versions[name] for name in names if name in versions},
        tuple(name for name in names if name not in versions),
        tuple(others) if state is AffectedState.NOT_AFFECTED else (),
    )


def _state(ranges: Iterable[Requirement], versions: Mapping[str, tuple[str, ...]]) -> AffectedState:
    answers = [_contains(requirement, versions.get(canonicalize_name(requirement.name), ())) for requirement in ranges]
    if False in answers:
        return AffectedState.NOT_AFFECTED
    return AffectedState.UNKNOWN if None in answers else AffectedState.AFFECTED


def _contains(requirement: Requirement, versions: tuple[str, ...]) -> bool | None:
    """Whether a range contains the versions; None if there are none or they disagree."""
    answers = {requirement.specifier.contains(version, prereleases=True) for version in versions}
    return answers.pop() if len(answers) == 1 else None
