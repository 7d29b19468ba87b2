"""What is known of releases on which a script cannot run: nothing, unless upstream says that what fails is not there.

What a script needs is not what its failure needs: a script may compute in float16 on the CPU, which torch 2.4 made
possible, and show a failure of any torch. A release outside `requires` or the dependencies was not measured, so the
header's ranges say nothing about it. Only `exists`, with upstream's address, says that it is not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model.affected import AnyOf, Overlap, packages_of
from repros.model.packages import format_requirement
from repros.model.repro import Repro, Variant

Met = Callable[[Requirement], Overlap]
"""Returns how many of a package's known releases meet a requirement; all if no release of it is known."""


@dataclass(frozen=True)
class UnmetRequirement:
    """A requirement of a script that releases which may be installed do not meet, so that they were not measured."""

    requirement: Requirement
    overlap: Overlap
    """How many of the releases meet it: none, or some."""
    own: bool
    """Whether it is about a package that the failure is in."""


def not_measured(needed: Requirement, overlap: Overlap, releases: str) -> str:
    """Return why releases were not measured: `the script needs torch>=2.4, so torch 2.1.2 was not measured`."""
    some = "" if overlap is Overlap.NONE else "some of "
    return f"the script needs {format_requirement(needed)}, so {some}{releases} was not measured"


def find_unmet(repro: Repro, variant: Variant, met: Met) -> tuple[UnmetRequirement, ...]:
    """Return what the script needs for a variant and the releases do not meet: the widest gap of each package.

    Those of the packages that the failure is in are first.
    """
    own = own_packages(repro, variant)
    found: dict[str, dict[Overlap, UnmetRequirement]] = {}
    for requirement in repro.needs(variant):
        name, overlap = canonicalize_name(requirement.name), met(requirement)
        if overlap in {Overlap.NONE, Overlap.SOME}:
            found.setdefault(name, {}).setdefault(overlap, UnmetRequirement(requirement, overlap, name in own))
    widest = (by_overlap.get(Overlap.NONE) or by_overlap[Overlap.SOME] for by_overlap in found.values())
    return tuple(sorted(widest, key=lambda gap: not gap.own))


def own_packages(repro: Repro, variant: Variant) -> frozenset[str]:
    """Return the canonical names of the packages that a failure is in or that its ranges name."""
    return frozenset(map(canonicalize_name, (*repro.packages, *packages_of(variant.affected))))


def existence(repro: Repro, variant: Variant) -> tuple[AnyOf, ...]:
    """Return the conditions under which what fails exists; a variant with ranges of its own fails in another way."""
    return repro.exists if variant.affected == repro.affected else ()


def settle(found: Overlap, exists: Overlap, gaps: Sequence[UnmetRequirement]) -> Overlap:
    """Return how many of the releases that may be installed are affected, as far as this is known.

    Releases without what fails are free of it. Else one that was not measured is never free, and it is affected only if
    the script cannot run because of a package that the failure is not in: that one does not decide.

    Args:
        found: how many the header's ranges call affected.
        exists: how many have what fails, as far as upstream documents it.
        gaps: what was not measured.
    """
    if exists is Overlap.NONE:
        return Overlap.NONE
    if found is Overlap.NONE:
        return Overlap.UNKNOWN if gaps else Overlap.NONE
    own = {gap.overlap for gap in gaps if gap.own}
    if Overlap.NONE in own:
        return Overlap.UNKNOWN
    return Overlap.SOME if found is Overlap.ALL and own else found
