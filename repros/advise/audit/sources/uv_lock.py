"""Parser of `uv.lock`: exact releases, several of one package where they differ by marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from repros.advise.audit.sources.parsing import exact_constraint, expect, group_by_package, lines_of_names, read_toml
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError


def read_uv_lock(file: Path) -> Subject:
    """Parse a lock.

    Raises:
        ReprosError: it is not a `uv.lock`.
    """
    data, text = read_toml(file)
    packages = data.get("package", [])
    if "version" not in data or not isinstance(packages, list):
        raise ReprosError(f"{file} is not a lock of uv; expected 'version' and tables [[package]].")
    return Subject(str(file), group_by_package(_constraints(file, packages, text)), complete=True)


def _constraints(file: Path, packages: Iterable[Any], text: str) -> Iterator[tuple[str, Constraint]]:
    # In the order of the file, so that two releases of one package have two lines.
    lines = lines_of_names(text)
    for entry in packages:
        package = expect(file, "[[package]]", entry, dict)
        name = expect(file, "name in [[package]]", package.get("name", ""), str)
        location = Location(str(file), next(lines.get(name, iter(())), 1))
        if "version" in package:
            markers = expect(file, f"resolution-markers of {name}", package.get("resolution-markers", []), list)
            marker = " or ".join(
                expect(file, f"resolution-markers of {name}", expression, str) for expression in markers
            )
            yield name, exact_constraint(expect(file, f"version of {name}", package["version"], str), location, marker)
        else:
            yield name, Constraint("without a version", location)
