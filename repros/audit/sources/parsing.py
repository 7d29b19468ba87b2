"""Helpers that the parsers of files share."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.audit.subject import Constraint, Location
from repros.errors import ReprosError


def range_constraint(
    specifiers: SpecifierSet, location: Location, marker: str = "", *, required: bool = True
) -> Constraint:
    """Return the constraint for a range: one release where the range pins it, else the range."""
    version = _pinned_version(specifiers)
    if version is not None:
        return Constraint(str(version), location, version, marker=marker, required=required)
    raw = _lower_bound_first(specifiers) or "any release"
    return Constraint(raw, location, releases=specifiers, marker=marker, required=required)


def exact_constraint(version: str, location: Location, marker: str = "") -> Constraint:
    """Return the constraint for a version in a lock; for a text that is not a version, no release is known."""
    try:
        return Constraint(version, location, Version(version), marker=marker)
    except InvalidVersion:
        return Constraint(version, location, marker=marker)


def group_by_package(constraints: Iterable[tuple[str, Constraint]]) -> dict[str, tuple[Constraint, ...]]:
    """Return the constraints by the canonical names of their packages."""
    groups: dict[str, tuple[Constraint, ...]] = {}
    for name, constraint in constraints:
        key = canonicalize_name(name)
        groups[key] = (*groups.get(key, ()), constraint)
    return groups


def _pinned_version(specifiers: SpecifierSet) -> Version | None:
    for one in specifiers:
        if one.operator in {"==", "==="} and not one.version.endswith(".*"):
            try:
                return Version(one.version)
            except InvalidVersion:
                return None
    return None


def _lower_bound_first(specifiers: SpecifierSet) -> str:
    return ",".join(sorted(map(str, specifiers), key=lambda text: (not text.startswith((">", "~", "=")), text)))


def read_toml(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a TOML file's data and its lines.

    Raises:
        ReprosError: it is not TOML.
    """
    text = file.read_text(encoding="utf-8")
    try:
        return tomllib.loads(text), text.splitlines()
    except tomllib.TOMLDecodeError as error:
        raise ReprosError(f"{file} is not TOML ({error}).") from error


def find_line(lines: list[str], pattern: str, start: int = 0) -> int:
    """Return the number of the first line after `start` that the pattern matches; 1 if there is none."""
    expression = re.compile(pattern, re.IGNORECASE)
    return next((number for number, line in enumerate(lines, 1) if number > start and expression.search(line)), 1)
