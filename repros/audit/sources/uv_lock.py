"""Parser of `uv.lock`: exact releases, several of one package where they differ by marker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from repros.audit.sources.parsing import exact_constraint, find_line, group_by_package, read_toml
from repros.audit.subject import Constraint, Location, Subject
from repros.errors import ReprosError


def read_uv_lock(file: Path) -> Subject:
    """Parse a lock.

    Raises:
        ReprosError: it is not a lock of uv.
    """
    data, lines = read_toml(file)
    packages = data.get("package", [])
    if "version" not in data or not isinstance(packages, list):
        raise ReprosError(f"{file} is not a lock of uv; expected 'version' and tables [[package]].")
    return Subject(str(file), group_by_package(_constraints(file, packages, lines)), complete=True)


def _constraints(
    file: Path, packages: Iterable[Mapping[str, Any]], lines: list[str]
) -> Iterator[tuple[str, Constraint]]:
    line = 0
    for package in packages:
        name = str(package.get("name", ""))
        # In the order of the file, so that two releases of one package have two lines.
        line = max(line, find_line(lines, rf'^name = "{re.escape(name)}"', line))
        location = Location(str(file), line)
        if "version" in package:
            markers = " or ".join(package.get("resolution-markers", []))
            yield name, exact_constraint(package["version"], location, markers)
        else:
            yield name, Constraint("without a version", location)
