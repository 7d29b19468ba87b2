"""Parser of `pyproject.toml`: the dependencies of a project, its extras and its groups. These are ranges, not pins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from repros.audit.sources.parsing import find_line, group_by_package, range_constraint, read_toml
from repros.audit.subject import Constraint, Location, Subject
from repros.errors import ReprosError


def read_pyproject(file: Path) -> Subject:
    """Parse all dependencies of a project.

    Raises:
        ReprosError: it declares no dependencies.
    """
    data, lines = read_toml(file)
    project = data.get("project", {})
    groups = data.get("dependency-groups", {})
    if not isinstance(project, dict) or not isinstance(groups, dict) or not (project or groups):
        raise ReprosError(f"{file} has neither [project] nor [dependency-groups]; name a lock or an environment.")
    constraints: list[tuple[str, Constraint]] = []
    unparsed = []
    for text, condition in _requirements(project, groups):
        location = Location(str(file), find_line(lines, re.escape(text)))
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            unparsed.append(f"{location}: {text!r} is not a requirement")
        else:
            constraints.append((requirement.name, _constraint(requirement, condition, location)))
    if "dependencies" in project.get("dynamic", []):
        unparsed.append(f"{file}: its dependencies are dynamic, so they are not in this file")
    if python := _requires_python(project):
        location = Location(str(file), find_line(lines, "requires-python"))
        constraints.append(("python", range_constraint(python, location)))
    return Subject(str(file), group_by_package(constraints), complete=False, unparsed=tuple(unparsed))


def _requirements(project: dict[str, Any], groups: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every requirement with the extra or the group that it belongs to."""
    yield from ((text, "") for text in project.get("dependencies", []))
    for extra, specs in project.get("optional-dependencies", {}).items():
        yield from ((text, f"extra == '{extra}'") for text in specs)
    for group, specs in groups.items():
        # A table includes another group, whose requirements are yielded for that group.
        yield from ((text, f"group == '{group}'") for text in specs if isinstance(text, str))


def _constraint(requirement: Requirement, condition: str, location: Location) -> Constraint:
    marker = " and ".join(filter(None, [condition, str(requirement.marker or "")]))
    if requirement.url:
        return Constraint("from a URL", location, marker=marker)
    return range_constraint(requirement.specifier, location, marker)


def _requires_python(project: dict[str, Any]) -> SpecifierSet | None:
    try:
        return SpecifierSet(project["requires-python"])
    except (KeyError, TypeError, InvalidSpecifier):
        return None
