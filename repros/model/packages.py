"""Names of packages: which distributions hold the same code, and which are released together."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

SAME_CODE = {
    "torch": ("pytorch",),
    "lightning": ("pytorch-lightning", "lightning-fabric"),
}
"""A package and the other names under which its code is distributed with the same version numbers.

`pytorch` is conda's name of torch. `lightning` and the two older distributions are built from one source.
"""

RELEASED_TOGETHER = {"lightning": ("pytorch-lightning",), "pytorch-lightning": ("lightning-fabric",)}
"""A distribution and those it needs in the same version, although its metadata does not say so."""

_PACKAGES = {other: package for package, others in SAME_CODE.items() for other in others}


def package_of(distribution: str) -> str:
    """Return the package that a distribution holds, canonical: `lightning` for `pytorch_lightning`."""
    name = str(canonicalize_name(distribution))
    return _PACKAGES.get(name, name)


def distributions_of(package: str) -> tuple[str, ...]:
    """Return the names under which a package is distributed, its own first."""
    name = str(canonicalize_name(package))
    return (name, *SAME_CODE.get(name, ()))


_OPERATORS = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
"""In the order in which a range names its bounds: lower bounds first."""


def format_requirement(requirement: Requirement) -> str:
    """Return a range with its lower bound first: `lightning>=2.1,<2.4`; packaging itself keeps no order."""
    bounds = sorted(requirement.specifier, key=lambda bound: (_OPERATORS.index(bound.operator), bound.version))
    return requirement.name + ",".join(map(str, bounds))


def intersection(ranges: Iterable[SpecifierSet]) -> SpecifierSet:
    """Return the versions that are in all ranges, without the bounds `>=` that a higher one makes needless."""
    bounds = {bound for specifiers in ranges for bound in specifiers}
    lowest = max((Version(bound.version) for bound in bounds if bound.operator == ">="), default=None)
    return SpecifierSet(bound for bound in bounds if bound.operator != ">=" or Version(bound.version) == lowest)
