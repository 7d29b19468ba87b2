"""Small things as people read them."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement

_BOUNDS = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
"""Lower bounds first, as ranges are spoken."""


def near(path: Path) -> Path:
    """Return the path from the working directory if it lies below, else as it is."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def count(number: int, noun: str) -> str:
    """Return `1 cell`, `2 cells`, `2 processes`."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def spoken(requirement: Requirement) -> str:
    """Return a range with its lower bound first: `lightning>=2.1,<2.4`; packaging sorts them by their text."""
    bounds = sorted(requirement.specifier, key=lambda bound: _BOUNDS.index(bound.operator))
    return requirement.name + ",".join(map(str, bounds))
