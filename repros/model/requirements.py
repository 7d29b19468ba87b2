"""Version ranges as text."""

from __future__ import annotations

from packaging.requirements import Requirement

_OPERATORS = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
"""In the order in which a range names its bounds: lower bounds first."""


def format_requirement(requirement: Requirement) -> str:
    """Return a range with its lower bound first: `lightning>=2.1,<2.4`; packaging itself keeps no order."""
    bounds = sorted(requirement.specifier, key=lambda bound: (_OPERATORS.index(bound.operator), bound.version))
    return requirement.name + ",".join(map(str, bounds))
