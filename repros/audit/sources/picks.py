"""What the readers of files share."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from repros.audit.subject import AuditError, Pick, Place


def pick(specifiers: SpecifierSet, place: Place, marker: str = "", *, required: bool = True) -> Pick:
    """Return what a range says: a release where it is pinned, else the range."""
    said = _in_order(specifiers) or "any release"
    version = _pinned(specifiers)
    if version is not None:
        return Pick(str(version), place, version, marker=marker, required=required)
    return Pick(said, place, releases=specifiers, marker=marker, required=required)


def exact(version: str, place: Place, marker: str = "") -> Pick:
    """Return what a lock says; of a version that is none, nothing is known."""
    try:
        return Pick(version, place, Version(version), marker=marker)
    except InvalidVersion:
        return Pick(version, place, marker=marker)


def _pinned(specifiers: SpecifierSet) -> Version | None:
    for one in specifiers:
        if one.operator in {"==", "==="} and not one.version.endswith(".*"):
            try:
                return Version(one.version)
            except InvalidVersion:
                return None
    return None


def _in_order(specifiers: SpecifierSet) -> str:
    """Return the range with its lower bound first."""
    return ",".join(sorted(map(str, specifiers), key=lambda text: (not text.startswith((">", "~", "=")), text)))


def toml(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a TOML file's data and its lines.

    Raises:
        AuditError: it is not TOML.
    """
    text = file.read_text(encoding="utf-8")
    try:
        return tomllib.loads(text), text.splitlines()
    except tomllib.TOMLDecodeError as error:
        raise AuditError(f"{file} is not TOML ({error}).") from error


def line_of(lines: list[str], pattern: str, start: int = 0) -> int:
    """Return the number of the first line that matches the pattern; 1 where none does."""
    wanted = re.compile(pattern, re.IGNORECASE)
    return next((number for number, line in enumerate(lines, 1) if number > start and wanted.search(line)), 1)
