"""Parser of `pylock.toml` (PEP 751), the lock that `pip lock`, `uv export` and others write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

from repros.advise.audit.sources.parsing import (
    find_line,
    group_by_package,
    lines_of_names,
    range_constraint,
    read_toml,
    reason,
)
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError


def read_pylock(file: Path) -> Subject:
    """Parse a lock.

    Raises:
        ReprosError: it is not a pylock file.
    """
    data, text = read_toml(file)
    try:
        lock = Pylock.from_dict(data)
    except (PylockValidationError, PylockUnsupportedVersionError, ValueError, TypeError, AttributeError) as error:
        # The library raises the last three for values of other types and for numbers of 5,000 digits.
        raise ReprosError(f"{file} is not a readable pylock file ({reason(error)}).") from error
    return Subject(str(file), group_by_package(_constraints(file, lock, text)), complete=True)


def _constraints(file: Path, lock: Pylock, text: str) -> Iterator[tuple[str, Constraint]]:
    lines = lines_of_names(text)
    for package in lock.packages:
        location = Location(str(file), next(lines.get(package.name, iter(())), 1))
        raw = "without a version" if package.version is None else str(package.version)
        yield package.name, Constraint(raw, location, package.version, marker=str(package.marker or ""))
    if lock.requires_python is not None:
        location = Location(str(file), find_line(text, "requires-python"))
        yield "python", range_constraint(lock.requires_python, location)
