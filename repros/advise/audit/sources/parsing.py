"""Shared helpers of the parsers."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.advise.audit.markers import can_hold
from repros.advise.audit.subject import Constraint, Location
from repros.model.errors import ReprosError
from repros.model.packages import format_requirement

T = TypeVar("T")

_LARGEST_FILE = 16 * 2**20
"""Bytes. The largest locks of real projects have about 3 MB."""
_LONGEST_REQUIREMENT = 2_000
"""Characters of a requirement without its hashes."""
_MOST_SPECIFIERS = 64
_HUGE_NUMBER = re.compile(r"\d{50}")
"""Python does not convert numbers with more than 4,300 digits; dates and hashes of releases have at most 14."""
_MOST_PARTS = 200
_DEEP_KEY = re.compile(rf"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}""")
_LONGEST_QUOTE = 100
_LONGEST_REASON = 500
_NAME_LINE = re.compile(r"\s*name = [\"']([^\"']*)[\"']")


def range_constraint(
    specifiers: SpecifierSet, location: Location, marker: str = "", *, required: bool = True
) -> Constraint:
    """Return the constraint for a range: one release if the range pins it, else the range."""
    version = _pinned_version(specifiers)
    if version is not None:
        return Constraint(str(version), location, version, marker=marker, required=required)
    raw = _format(specifiers) or "any release"
    return Constraint(raw, location, releases=specifiers, marker=marker, required=required)


def exact_constraint(version: str, location: Location, marker: str = "") -> Constraint:
    """Return the constraint for a version in a lock; its release is unknown if the text is not a valid version."""
    if is_excessive(version):
        return Constraint(f"{version[:_LONGEST_QUOTE]}...", location, marker=marker)
    try:
        return Constraint(version, location, Version(version), marker=marker)
    except InvalidVersion:
        return Constraint(version, location, marker=marker)


def leave_out_foreign(constraints: Iterable[tuple[str, Constraint]]) -> Iterator[tuple[str, Constraint]]:
    """Yield the constraints without those whose marker never holds: `; sys_platform == "win32"`."""
    return ((name, constraint) for name, constraint in constraints if can_hold(constraint.marker) is not False)


def group_by_package(constraints: Iterable[tuple[str, Constraint]]) -> dict[str, tuple[Constraint, ...]]:
    """Return the constraints by canonical package name, without those that a pin of the same package implies."""
    groups: dict[str, list[Constraint]] = {}
    for name, constraint in constraints:
        groups.setdefault(canonicalize_name(name), []).append(constraint)
    return {name: _drop_implied(group) for name, group in groups.items()}


def _drop_implied(group: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return a package's constraints without the ranges that its only pin meets: `torch[opt]` next to `torch==2.1`.

    All lines without a marker apply together. If such a range installs the package, the pin becomes `required`.
    """
    pins = {constraint.version for constraint in group if constraint.version and not constraint.marker}
    if len(pins) != 1:
        return tuple(group)
    (pin,) = pins

    def is_implied(one: Constraint) -> bool:
        return not one.marker and one.releases is not None and one.releases.contains(pin, prereleases=True)

    required = any(one.required for one in group if is_implied(one))
    kept = (one for one in group if not is_implied(one))
    return tuple(replace(one, required=one.required or required) if one.version == pin else one for one in kept)


def is_excessive(text: str) -> bool:
    """Return whether a requirement is too long, or has too large numbers, for a fast comparison."""
    return (
        len(text) > _LONGEST_REQUIREMENT or text.count(",") > _MOST_SPECIFIERS or _HUGE_NUMBER.search(text) is not None
    )


def quote(text: str) -> str:
    """Return a text in quotes, truncated to fit a sentence."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


def reason(error: Exception) -> str:
    """Return a library's error message on one line, truncated to fit a sentence: it may quote the whole file."""
    # packaging puts the invalid text on a line of its own, and a caret below.
    message = " ".join(filter(None, (line.strip(" ^~") for line in str(error).splitlines())))
    return message if len(message) <= _LONGEST_REASON else f"{message[:_LONGEST_REASON]}..."


def _pinned_version(specifiers: SpecifierSet) -> Version | None:
    for specifier in specifiers:
        if specifier.operator in {"==", "==="} and not specifier.version.endswith(".*"):
            try:
                return Version(specifier.version)
            except InvalidVersion:
                return None
    return None


def _format(specifiers: SpecifierSet) -> str:
    requirement = Requirement("x")
    requirement.specifier = specifiers
    return format_requirement(requirement).removeprefix("x")


def read_text(file: Path) -> str:
    """Return a file's text.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        ReprosError: it is not a regular file (a pipe or a device may never end), or larger than any project's.
    """
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ReprosError(f"{file} is not a regular file; expected requirements, a lock or a pyproject.toml.")
    if status.st_size > _LARGEST_FILE:
        raise ReprosError(f"{file} has {status.st_size:,} bytes; expected at most {_LARGEST_FILE:,}.")
    return file.read_text(encoding="utf-8")


def read_toml(file: Path) -> tuple[dict[str, Any], str]:
    """Return a TOML file's data and its text.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        ReprosError: it is not TOML, or not a regular file of a reasonable size.
    """
    text = read_text(file)
    if _DEEP_KEY.search(text):  # tomllib takes quadratic time in the parts of a key
        raise ReprosError(f"{file} is not TOML that can be read (a key of more than {_MOST_PARTS} parts).")
    try:
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; arrays within arrays
        raise ReprosError(f"{file} is not TOML that can be read ({reason(error)}).") from error


def expect(file: Path, key: str, value: Any, type_: type[T]) -> T:
    """Return a value of a file if it has the expected type.

    Raises:
        ReprosError: it has another type.
    """
    if not isinstance(value, type_):
        expected = {"dict": "a table", "list": "a list", "str": "a text"}.get(type_.__name__, type_.__name__)
        raise ReprosError(f"{file}: {key} is {quote(str(value))}; expected {expected}.")
    return value


def find_line(text: str, wanted: str) -> int:
    """Return the number of the first line with the wanted text; 1 if there is none."""
    return text.count("\n", 0, max(0, text.find(wanted))) + 1


def lines_of_names(text: str) -> Mapping[str, Iterator[int]]:
    """Return the line numbers of `name = "NAME"` for each name, in the order of a lock's packages."""
    lines: dict[str, list[int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if name := _NAME_LINE.match(line):
            lines.setdefault(name[1], []).append(number)
    return {name: iter(numbers) for name, numbers in lines.items()}
