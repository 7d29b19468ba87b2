"""Packages: the distributions of one codebase, and version ranges as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

SAME_CODE = {
    "torch": ("pytorch",),
    "lightning": ("pytorch-lightning", "lightning-fabric"),
}
"""A package and the other names of distributions of its code, with the same version numbers.

`pytorch` is conda's name of torch. `lightning` and the two older distributions are built from one source.
"""

RELEASED_TOGETHER = {"lightning": ("pytorch-lightning",), "pytorch-lightning": ("lightning-fabric",)}
"""A distribution, and those that it needs in the same version without declaring it in its metadata."""

_PACKAGES = {other: package for package, others in SAME_CODE.items() for other in others}


def canonical_name(name: str) -> str:
    """Return a name as `packaging.utils.canonicalize_name` does, without its import, which takes as long as click's."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def package_of(distribution: str) -> str:
    """Return the canonical name of the package of a distribution: `lightning` for `pytorch_lightning`."""
    name = canonical_name(distribution)
    return _PACKAGES.get(name, name)


def distributions_of(package: str) -> tuple[str, ...]:
    """Return the names of a package's distributions, its own name first."""
    name = canonical_name(package)
    return (name, *SAME_CODE.get(name, ()))


_OPERATORS = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
"""The order of bounds in a range: lower bounds first."""


def format_requirement(requirement: Requirement) -> str:
    """Return a requirement with its lower bound first: `lightning>=2.1,<2.4`; `str()` of packaging keeps no order."""
    bounds = sorted(requirement.specifier, key=lambda bound: (_OPERATORS.index(bound.operator), bound.version))
    return requirement.name + ",".join(map(str, bounds))


def intersection(ranges: Iterable[SpecifierSet]) -> SpecifierSet:
    """Return the intersection of ranges, without `>=` bounds that a higher one implies."""
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - few commands compare versions
    from packaging.version import Version  # noqa: PLC0415 - the same

    bounds = {bound for specifiers in ranges for bound in specifiers}
    lowest = max((Version(bound.version) for bound in bounds if bound.operator == ">="), default=None)
    return SpecifierSet(bound for bound in bounds if bound.operator != ">=" or Version(bound.version) == lowest)
