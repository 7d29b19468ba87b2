"""Parser of `pylock.toml` (PEP 751), the lock that `pip lock`, `uv export` and others write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

from repros.audit.sources.parsing import find_line, group_by_package, range_constraint, read_toml
from repros.audit.subject import Constraint, Location, Subject
from repros.errors import ReprosError


def read_pylock(file: Path) -> Subject:
    """Parse a lock.

    Raises:
        ReprosError: it is not a pylock file.
    """
    data, lines = read_toml(file)
    try:
        lock = Pylock.from_dict(data)
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise ReprosError(f"{file} is not a readable pylock file ({error}).") from error
    return Subject(str(file), group_by_package(_constraints(file, lock, lines)), complete=True)


def _constraints(file: Path, lock: Pylock, lines: list[str]) -> Iterator[tuple[str, Constraint]]:
    line = 0
    for package in lock.packages:
        line = max(line, find_line(lines, rf'^\s*name = ["\']{re.escape(package.name)}["\']', line))
        location = Location(str(file), line)
        raw = "without a version" if package.version is None else str(package.version)
        yield package.name, Constraint(raw, location, package.version, marker=str(package.marker or ""))
    if lock.requires_python is not None:
        location = Location(str(file), find_line(lines, "requires-python"))
        yield "python", range_constraint(lock.requires_python, location)
