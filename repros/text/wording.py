"""Small things as people read them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

_BOUNDS = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
"""Lower bounds first, as ranges are format_requirement."""


def relative_to_cwd(path: Path) -> Path:
    """Return the path from the working directory if it lies below, else as it is."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def count(number: int, noun: str) -> str:
    """Return `1 cell`, `2 cells`, `2 processes`."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def format_requirement(requirement: Requirement) -> str:
    """Return a range with its lower bound first: `lightning>=2.1,<2.4`; packaging has no order for them."""
    bounds = sorted(requirement.specifier, key=lambda bound: _BOUNDS.index(bound.operator))
    return requirement.name + ",".join(map(str, bounds))


def listed(items: Iterable[str]) -> str:
    """Return `a, b, c`."""
    return ", ".join(items)


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Break text into lines between its words only, so that names, versions and links stay whole.

    Args:
        text: what to break.
        width: columns.
        indent: what every line begins with.
        hanging: what the lines from the second on begin with, if not the same.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
