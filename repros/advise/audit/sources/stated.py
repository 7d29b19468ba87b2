"""A text that states releases, such as the environment block of an issue, as a subject."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from repros.advise.audit.sources.parsing import exact_constraint, read_text
from repros.advise.audit.subject import Location, Subject

FindReleases = Callable[[str], Mapping[str, tuple[str, ...]]]
"""Returns the releases that a text states, by package."""


def read_stated(file: Path, find_releases: FindReleases) -> Subject | None:
    """Return a text's releases; None if it states none. The packages that it does not state are unknown."""
    text = read_text(file)
    lines = text.split("\n")
    constraints = {
        name: tuple(
            exact_constraint(version, Location(str(file), _line_of(name, version, lines))) for version in versions
        )
        for name, versions in find_releases(text).items()
    }
    return Subject(str(file), constraints, complete=False) if constraints else None


def _line_of(name: str, version: str, lines: list[str]) -> int:
    """Return the first line with a package and its release, else the first with the release."""
    spelled = re.compile(name.replace("-", "[-_. ]"), re.IGNORECASE)
    numbers = [number for number, line in enumerate(lines, 1) if version in line]
    return next((number for number in numbers if spelled.search(lines[number - 1])), next(iter(numbers), 1))
