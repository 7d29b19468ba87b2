"""Version ranges as text."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

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
