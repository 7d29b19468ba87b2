"""Parser of `pyproject.toml`: the dependencies of a project, its extras and its groups, as ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from repros.advise.audit.sources.parsing import (
    expect,
    find_line,
    group_by_package,
    is_excessive,
    leave_out_foreign,
    quote,
    range_constraint,
    read_toml,
)
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError


def read_pyproject(file: Path) -> Subject:
    """Parse all dependencies of a project.

    Raises:
        ReprosError: it declares no dependencies.
    """
    data, text = read_toml(file)
    project = data.get("project", {})
    groups = data.get("dependency-groups", {})
    if not isinstance(project, dict) or not isinstance(groups, dict) or not (project or groups):
        raise ReprosError(f"{file} has neither [project] nor [dependency-groups]; pass a lock or an environment.")
    constraints: list[tuple[str, Constraint]] = []
    unparsed = []
    for written, condition in _requirements(file, project, groups):
        location = Location(str(file), find_line(text, written))
        try:
            requirement = _parse(written)
        except InvalidRequirement:
            unparsed.append(f"{location}: {quote(written)} is not a requirement")
        else:
            constraints.append((requirement.name, _constraint(requirement, condition, location)))
    constraints = list(_as_uv_resolves(file, data, text, constraints))
    if "dependencies" in expect(file, "dynamic", project.get("dynamic", []), list):
        unparsed.append(f"{file}: its dependencies are dynamic, so they are not in this file")
    if python := _requires_python(project):
        location = Location(str(file), find_line(text, "requires-python"))
        constraints.append(("python", range_constraint(python, location)))
    packages = group_by_package(leave_out_foreign(constraints))
    return Subject(str(file), packages, complete=False, unparsed=tuple(unparsed))


def _parse(text: str) -> Requirement:
    """Return a requirement; an excessively long one is invalid."""
    if is_excessive(text):
        raise InvalidRequirement(text)
    try:
        return Requirement(text)
    except RecursionError as error:  # nested parentheses
        raise InvalidRequirement(text) from error


def _requirements(file: Path, project: dict[str, Any], groups: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every requirement with the extra or the group that it belongs to."""
    yield from ((text, "") for text in _texts(file, "dependencies", project.get("dependencies", [])))
    extras = expect(file, "optional-dependencies", project.get("optional-dependencies", {}), dict)
    for extra, specs in extras.items():
        yield from ((text, f"extra == '{extra}'") for text in _texts(file, f"the extra {quote(extra)}", specs))
    for group, specs in groups.items():
        # A table includes another group, whose requirements are yielded with that group.
        named = [spec for spec in expect(file, f"the group {quote(group)}", specs, list) if not isinstance(spec, dict)]
        yield from ((text, f"group == '{group}'") for text in _texts(file, f"the group {quote(group)}", named))


def _as_uv_resolves(
    file: Path, data: dict[str, Any], text: str, constraints: Iterable[tuple[str, Constraint]]
) -> Iterator[tuple[str, Constraint]]:
    """Yield the constraints with those of `[tool.uv]`.

    `override-dependencies` replace all others on their packages, `constraint-dependencies` limit a release without
    installing it, and a package with a source other than an index has an unknown release.
    """
    tool = data.get("tool", {})
    settings = expect(file, "tool.uv", tool.get("uv", {}) if isinstance(tool, dict) else {}, dict)
    sources = expect(file, "tool.uv.sources", settings.get("sources", {}), dict)
    elsewhere = {canonicalize_name(name) for name, source in sources.items() if not _is_index(source)}
    overrides: dict[str, list[Constraint]] = {}
    for written in _texts(file, "override-dependencies", settings.get("override-dependencies", [])):
        requirement = _parse_or_refuse(file, written)
        location = Location(str(file), find_line(text, written))
        overrides.setdefault(canonicalize_name(requirement.name), []).append(_constraint(requirement, "", location))
    for name, constraint in constraints:
        package = canonicalize_name(name)
        if package in elsewhere:
            yield name, Constraint("from tool.uv.sources", constraint.location, marker=constraint.marker)
        elif package in overrides:
            yield from ((name, override) for override in overrides[package])
        else:
            yield name, constraint
    for written in _texts(file, "constraint-dependencies", settings.get("constraint-dependencies", [])):
        requirement = _parse_or_refuse(file, written)
        limit = _constraint(requirement, "", Location(str(file), find_line(text, written)))
        yield requirement.name, replace(limit, required=False)


def _is_index(source: Any) -> bool:
    """Return whether every source of a package is an index, which has the same releases."""
    tables = source if isinstance(source, list) else [source]
    return all(isinstance(table, dict) and "index" in table for table in tables)


def _parse_or_refuse(file: Path, written: str) -> Requirement:
    try:
        return _parse(written)
    except InvalidRequirement as error:
        raise ReprosError(f"{file}: {quote(written)} in [tool.uv] is not a requirement.") from error


def _texts(file: Path, key: str, values: Any) -> Iterator[str]:
    for value in expect(file, key, values, list):
        yield expect(file, key, value, str)


def _constraint(requirement: Requirement, condition: str, location: Location) -> Constraint:
    marker = " and ".join(filter(None, [condition, str(requirement.marker or "")]))
    if requirement.url:
        return Constraint("from a URL", location, marker=marker)
    return range_constraint(requirement.specifier, location, marker)


def _requires_python(project: dict[str, Any]) -> SpecifierSet | None:
    try:
        text = project["requires-python"]
        return None if is_excessive(text) else SpecifierSet(text)
    except (KeyError, TypeError, InvalidSpecifier):
        return None
