"""Releases on which a script cannot run: their status is unknown, unless upstream documents that they lack the feature.

The requirements of a script are not those of its failure: a script may compute in float16 on the CPU, which needs
torch 2.4, and show a failure of any torch. A release outside `requires` or the dependencies was not measured, so the
header's ranges do not cover it. Only `exists`, with its upstream source, shows that such a release is unaffected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from repros.model.affected import AnyOf, Overlap, packages_of
from repros.model.packages import canonical_name, format_requirement
from repros.model.repro import Repro, Variant

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Met = Callable[["Requirement"], Overlap]
"""Returns how many of a package's known releases meet a requirement; `ALL` if no release is known."""


@dataclass(frozen=True)
class UnmetRequirement:
    """A requirement of a script that some installable releases do not meet; these were not measured."""

    requirement: Requirement
    overlap: Overlap
    """How many releases meet it: `NONE` or `SOME`."""
    own: bool
    """Whether it names a package that contains the failure."""


def not_measured(needed: Requirement, overlap: Overlap, releases: str) -> str:
    """Return why releases were not measured: `the script needs torch>=2.4, so torch 2.1.2 was not measured`."""
    some = "" if overlap is Overlap.NONE else "some of "
    return f"the script needs {format_requirement(needed)}, so {some}{releases} was not measured"


def find_unmet(repro: Repro, variant: Variant, met: Met) -> tuple[UnmetRequirement, ...]:
    """Return the unmet requirements of a variant: for each package the one that the fewest releases meet.

    Packages that contain the failure come first.
    """
    own = own_packages(repro, variant)
    by_package: dict[str, dict[Overlap, UnmetRequirement]] = {}
    for requirement in repro.needs(variant):
        name, overlap = canonical_name(requirement.name), met(requirement)
        if overlap in {Overlap.NONE, Overlap.SOME}:
            by_package.setdefault(name, {}).setdefault(overlap, UnmetRequirement(requirement, overlap, name in own))
    widest = (by_overlap.get(Overlap.NONE) or by_overlap[Overlap.SOME] for by_overlap in by_package.values())
    return tuple(sorted(widest, key=lambda unmet: not unmet.own))


def own_packages(repro: Repro, variant: Variant) -> frozenset[str]:
    """Return the canonical names of the packages that contain a failure or that its ranges name."""
    return frozenset(map(canonical_name, (*repro.packages, *packages_of(variant.affected))))


def existence(repro: Repro, variant: Variant) -> tuple[AnyOf, ...]:
    """Return the documented conditions for the existence of what fails.

    A variant with ranges of its own fails in another way, so it has none.
    """
    return repro.exists if variant.affected == repro.affected else ()


def settle(affected: Overlap, exists: Overlap, unmet: Sequence[UnmetRequirement]) -> Overlap:
    """Return how many of the installable releases are affected, as far as this is known.

    Releases that lack the failing feature are unaffected. Any other unmeasured release is never called unaffected. It
    is called affected only if the unmet requirement names a package that does not contain the failure.

    Args:
        affected: how many are in the header's ranges.
        exists: how many have the failing feature, as far as upstream documents it.
        unmet: the requirements that releases do not meet.
    """
    if exists is Overlap.NONE:
        return Overlap.NONE
    if affected is Overlap.NONE:
        return Overlap.UNKNOWN if unmet else Overlap.NONE
    own = {requirement.overlap for requirement in unmet if requirement.own}
    if Overlap.NONE in own:
        return Overlap.UNKNOWN
    return Overlap.SOME if affected is Overlap.ALL and own else affected
