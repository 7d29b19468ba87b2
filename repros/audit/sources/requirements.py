"""`requirements.txt`, with all that pip allows there: `-r`, `-c`, markers, hashes, links."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from pip_requirements_parser import RequirementsFile

from repros.audit.sources.picks import pick
from repros.audit.subject import Pick, Place, Subject


def read(file: Path) -> Subject:
    """Read a file and those that it names."""
    file.read_bytes().decode("utf-8")  # the library's own error for a missing file names neither file nor way out
    parsed = RequirementsFile.from_file(str(file), include_nested=True)
    picks: dict[str, list[Pick]] = defaultdict(list)
    unread = []
    for found in parsed.requirements:
        line = found.requirement_line
        place = Place(_near(file, line.filename), line.line_number)
        if found.name is None:
            unread.append(f"{place}: {line.line} does not say which package it is")
        else:
            picks[canonicalize_name(found.name)].append(_pick(found, place))
    for wrong in parsed.invalid_lines:
        line = wrong.requirement_line
        problem = str(wrong.error_message).splitlines()[0].strip(": ")
        unread.append(f"{_near(file, line.filename)}:{line.line_number}: {line.line.strip()!r} ({problem})")
    return Subject(
        str(file), {name: tuple(found) for name, found in picks.items()}, complete=False, unread=tuple(unread)
    )


def _pick(found: Any, place: Place) -> Pick:
    marker = str(found.marker or "")
    required = not found.is_constraint
    if found.link is not None and not str(found.specifier or ""):
        return Pick("from a link", place, marker=marker, required=required)
    try:
        specifiers = SpecifierSet(str(found.specifier or ""))
    except InvalidSpecifier:
        return Pick(str(found.specifier), place, marker=marker, required=required)
    return pick(specifiers, place, marker, required=required)


def _near(file: Path, other: str) -> str:
    """Return a nested file's name as it stands beside the file that was given."""
    path = Path(other)
    try:
        return str(file.parent / path.absolute().relative_to(file.parent.absolute()))
    except ValueError:
        return str(path)
