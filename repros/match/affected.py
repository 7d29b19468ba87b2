"""What the versions that a log tells mean for a repro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model import Repro, Variant


class State(StrEnum):
    """Whether the versions are ones that have the failure."""

    AFFECTED = "affected"
    NOT_TOLD = "not told"
    NOT_AFFECTED = "not affected"

    @property
    def order(self) -> int:
        """Place among the states, what concerns the reader first."""
        return list(State).index(self)


@dataclass(frozen=True)
class Affected:
    """The answer, and from what it was drawn."""

    state: State
    ranges: tuple[Requirement, ...]
    """All must hold for the failure to be expected; empty: no release is free of it."""
    told: Mapping[str, tuple[str, ...]]
    """The versions in the log that the ranges speak of."""
    missing: tuple[str, ...]
    """Packages that the ranges speak of and the log does not."""
    otherwise: tuple[str, ...] = ()
    """Variants with the same message that do concern these versions."""


def affected(repro: Repro, variants: Iterable[Variant], versions: Mapping[str, tuple[str, ...]]) -> Affected:
    """Evaluate a repro's ranges.

    Args:
        repro: which one.
        variants: those that show what the log shows; the failing one counts, if it is among them.
        versions: what the log tells; of several versions of one package all must agree.
    """
    shown = sorted(variants, key=lambda variant: variant.name != "failing")
    ranges = shown[0].affected if shown else repro.affected
    state = _state(ranges, versions)
    names = [canonicalize_name(requirement.name) for requirement in ranges]
    others = [v.name for v in shown[1:] if v.affected != ranges and _state(v.affected, versions) is State.AFFECTED]
    return Affected(
        state,
        ranges,
        {name: versions[name] for name in dict.fromkeys(names) if name in versions},
        tuple(name for name in dict.fromkeys(names) if name not in versions),
        tuple(others) if state is State.NOT_AFFECTED else (),
    )


def _state(ranges: Iterable[Requirement], versions: Mapping[str, tuple[str, ...]]) -> State:
    answers = [_holds(requirement, versions.get(canonicalize_name(requirement.name), ())) for requirement in ranges]
    if False in answers:
        return State.NOT_AFFECTED
    return State.NOT_TOLD if None in answers else State.AFFECTED


def _holds(requirement: Requirement, stated: tuple[str, ...]) -> bool | None:
    answers = {requirement.specifier.contains(version, prereleases=True) for version in stated}
    return answers.pop() if len(answers) == 1 else None
