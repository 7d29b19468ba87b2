"""Parser of `requirements.txt` with everything that pip allows in it: `-r`, `-c`, markers, hashes, URLs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pip_requirements_parser import RequirementsFile

from repros.audit.sources.parsing import group_by_package, range_constraint
from repros.audit.subject import Constraint, Location, Subject


def read_requirements(file: Path) -> Subject:
    """Parse a file and the files that it includes."""
    file.read_bytes().decode("utf-8")  # the library's own error for a missing file has neither its name nor a way out
    parsed = RequirementsFile.from_file(str(file), include_nested=True)
    constraints: list[tuple[str, Constraint]] = []
    unparsed = []
    for found in parsed.requirements:
        line = found.requirement_line
        location = Location(_relative_name(file, line.filename), line.line_number)
        if found.name is None:
            unparsed.append(f"{location}: {line.line} does not name its package")
        else:
            constraints.append((found.name, _constraint(found, location)))
    for wrong in parsed.invalid_lines:
        line = wrong.requirement_line
        location = Location(_relative_name(file, line.filename), line.line_number)
        problem = str(wrong.error_message).splitlines()[0].strip(": ")
        unparsed.append(f"{location}: {line.line.strip()!r} ({problem})")
    return Subject(str(file), group_by_package(constraints), complete=False, unparsed=tuple(unparsed))


def _constraint(found: Any, location: Location) -> Constraint:
    marker = str(found.marker or "")
    required = not found.is_constraint
    if found.link is not None and not str(found.specifier or ""):
        return Constraint("from a URL", location, marker=marker, required=required)
    try:
        specifiers = SpecifierSet(str(found.specifier or ""))
    except InvalidSpecifier:
        return Constraint(str(found.specifier), location, marker=marker, required=required)
    return range_constraint(specifiers, location, marker, required=required)


def _relative_name(file: Path, included: str) -> str:
    """Return an included file's path, relative to the same folder as the path that the user gave."""
    path = Path(included)
    try:
        return str(file.parent / path.absolute().relative_to(file.parent.absolute()))
    except ValueError:
        return str(path)
