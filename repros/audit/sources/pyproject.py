"""`pyproject.toml`: the dependencies of a project, its extras and its groups. These are ranges, not pins."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from repros.audit.sources.picks import line_of, pick, toml
from repros.audit.subject import AuditError, Pick, Place, Subject


def read(file: Path) -> Subject:
    """Read what a project depends on, wherever it says so."""
    data, lines = toml(file)
    project = data.get("project", {})
    groups = data.get("dependency-groups", {})
    if not isinstance(project, dict) or not isinstance(groups, dict) or not (project or groups):
        raise AuditError(f"{file} has neither [project] nor [dependency-groups]; name a lock or an environment.")
    picks: dict[str, list[Pick]] = defaultdict(list)
    unread = []
    for text, condition in _said(project, groups):
        place = Place(str(file), line_of(lines, re.escape(text)))
        try:
            spec = Requirement(text)
        except InvalidRequirement:
            unread.append(f"{place}: {text!r} is no requirement")
            continue
        marker = " and ".join(filter(None, [condition, str(spec.marker or "")]))
        one = Pick("from a link", place, marker=marker) if spec.url else pick(spec.specifier, place, marker)
        picks[canonicalize_name(spec.name)].append(one)
    if "dependencies" in project.get("dynamic", []):
        unread.append(f"{file}: its dependencies are dynamic, so they are not in this file")
    if python := _python(project):
        picks["python"].append(pick(python, Place(str(file), line_of(lines, "requires-python"))))
    return Subject(
        str(file), {name: tuple(found) for name, found in picks.items()}, complete=False, unread=tuple(unread)
    )


def _said(project: dict[str, Any], groups: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every requirement with the condition under which it is one."""
    yield from ((text, "") for text in project.get("dependencies", []))
    for extra, specs in project.get("optional-dependencies", {}).items():
        yield from ((text, f"extra == '{extra}'") for text in specs)
    for group, specs in groups.items():
        # A group that is included is read where it stands itself.
        yield from ((text, f"group == '{group}'") for text in specs if isinstance(text, str))


def _python(project: dict[str, Any]) -> SpecifierSet | None:
    try:
        return SpecifierSet(project["requires-python"])
    except (KeyError, TypeError, InvalidSpecifier):
        return None
