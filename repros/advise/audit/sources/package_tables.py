"""Parser of the locks of uv, Poetry and PDM: `[[package]]` with a release, several of one package by marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from repros.advise.audit.sources.parsing import exact_constraint, expect, group_by_package, lines_of_names, read_toml
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError

_OF_LOCKS = {"version": "uv", "metadata": "Poetry or PDM"}
"""A key at the top of a lock, and the tools that write it."""


def read_package_tables(file: Path) -> Subject:
    """Parse a lock.

    Raises:
        ReprosError: it is not a lock of these tools.
    """
    data, text = read_toml(file)
    packages = data.get("package", [])
    if not _OF_LOCKS.keys() & data.keys() or not isinstance(packages, list):
        tools = " or ".join(f"{key!r} ({tool})" for key, tool in _OF_LOCKS.items())
        raise ReprosError(f"{file} is not a lock of uv, Poetry or PDM; expected {tools} and tables [[package]].")
    return Subject(str(file), group_by_package(_constraints(file, packages, text)), complete=True)


def _constraints(file: Path, packages: Iterable[Any], text: str) -> Iterator[tuple[str, Constraint]]:
    # In the order of the file, so that two releases of one package have two lines.
    lines = lines_of_names(text)
    for entry in packages:
        package = expect(file, "[[package]]", entry, dict)
        name = expect(file, "name in [[package]]", package.get("name", ""), str)
        location = Location(str(file), next(lines.get(name, iter(())), 1))
        if "version" in package:
            version = expect(file, f"version of {name}", package["version"], str)
            yield name, exact_constraint(version, location, _marker(file, name, package))
        else:
            yield name, Constraint("without a version", location)


def _marker(file: Path, name: str, package: dict[str, Any]) -> str:
    """Return the marker under which a package is installed; Poetry has one for each group if they differ."""
    key = next((key for key in ("resolution-markers", "markers", "marker") if key in package), "")
    given = package.get(key, [])
    every = [given] if isinstance(given, str) else [*given.values()] if isinstance(given, dict) else given
    expressions = expect(file, f"{key} of {name}", every, list)
    return " or ".join(expect(file, f"{key} of {name}", expression, str) for expression in expressions)
