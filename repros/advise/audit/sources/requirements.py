"""Parser of `requirements.txt` with all of pip's syntax: `-r`, `-c`, markers, hashes, URLs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pip_requirements_parser import RequirementsFile

from repros.advise.audit.sources.parsing import (
    group_by_package,
    is_excessive,
    leave_out_foreign,
    quote,
    range_constraint,
    read_text,
)
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError

_INCLUDES = {"requirements": "-r", "constraints": "-c"}
"""The parser's names of the options that include another file."""
_DEEPEST = 50
"""Levels of nested includes."""


def read_requirements(file: Path) -> Subject:
    """Parse a file and its includes, each once.

    Raises:
        ReprosError: an included file cannot be read, the parser fails, or every line is for other platforms.
    """
    reading = _Reading(file)
    constraints = list(reading.constraints(file, is_constraint=False))
    packages = group_by_package(leave_out_foreign(constraints))
    if constraints and not packages:
        raise ReprosError(
            f"{file} has no requirement for Linux with Python 3.11 or newer; expected those of the machine that trains."
        )
    return Subject(str(file), packages, complete=False, unparsed=tuple(reading.unparsed))


@dataclass
class _Reading:
    """The state of reading one file with its includes."""

    first: Path
    unparsed: list[str] = field(default_factory=list)
    visited: set[tuple[Path, bool]] = field(default_factory=set)

    def constraints(self, file: Path, *, is_constraint: bool, depth: int = 0) -> Iterator[tuple[str, Constraint]]:
        """Yield the packages of a file in order, with those of an included file at the position of the include.

        Args:
            file: the file.
            is_constraint: whether it was included by `-c`.
            depth: its level of nesting.
        """
        self.visited.add((file.resolve(), is_constraint))
        for parsed in _parse(file, is_constraint=is_constraint):
            line = parsed.requirement_line
            location = Location(_relative_name(self.first, line.filename), line.line_number)
            if type(parsed).__name__ == "OptionLine":
                for option, names in parsed.options.items():
                    for name in names if option in _INCLUDES else ():
                        included = option == "constraints" or is_constraint
                        yield from self._include(name, file, location, is_constraint=included, depth=depth)
            elif getattr(parsed, "error_message", None) is not None:
                problem = str(parsed.error_message).splitlines()[0].strip(": ")
                self._skip(file, location, f"{quote(line.line.strip())} ({problem[:_LONGEST_PROBLEM]})")
            elif parsed.name is None:
                self._skip(file, location, f"{line.line[:_LONGEST_PROBLEM]} does not name its package")
            elif is_excessive(f"{parsed.specifier or ''}{parsed.marker or ''}"):
                self._skip(file, location, f"{quote(line.line.strip())} is too long for a requirement")
            else:
                yield parsed.name, _constraint(parsed, location)

    def _skip(self, file: Path, location: Location, problem: str) -> None:
        """Note a line that is no requirement; quote none of a file outside the first one's folder.

        Its lines may be secrets: a pull request may include `/proc/self/environ`, and a report of it is published.
        """
        folder = self.first.parent.resolve()
        is_own = file.resolve().is_relative_to(folder)
        self.unparsed.append(f"{location}: {problem if is_own else f'no requirement (not quoted: outside {folder})'}")

    def _include(
        self, name: str, file: Path, location: Location, *, is_constraint: bool, depth: int
    ) -> Iterator[tuple[str, Constraint]]:
        """Yield the packages of an included file; URLs are not fetched, and no file is read twice."""
        if "://" in name or name.startswith("file:"):
            self.unparsed.append(f"{location}: {quote(name)} is a URL, which is not fetched")
            return
        included = file.parent / name
        try:
            if (included.resolve(), is_constraint) in self.visited:
                return
            if depth >= _DEEPEST:
                raise ReprosError(f"{location}: more than {_DEEPEST} files include one another.")
            yield from self.constraints(included, is_constraint=is_constraint, depth=depth + 1)
        except (OSError, ValueError) as error:  # a name with a null byte, a file that is not UTF-8
            reason = getattr(error, "strerror", None) or (
                "not UTF-8 text" if isinstance(error, UnicodeError) else error
            )
            raise ReprosError(f"{location}: the included file {quote(name)} cannot be read ({reason}).") from error


_LONGEST_PROBLEM = 200


def _parse(file: Path, *, is_constraint: bool) -> list[Any]:
    """Return the parsed lines of one file, without comments.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        ReprosError: the parser fails.
    """
    read_text(file)  # for errors with the file's name, which the parser's lack
    try:
        lines = list(RequirementsFile.parse(str(file), include_nested=False, is_constraint=is_constraint))
    except Exception as error:  # hostile text may raise any exception in the third-party parser
        raise ReprosError(f"{file} cannot be parsed as requirements ({type(error).__name__}: {error}).") from error
    return [line for line in lines if type(line).__name__ != "CommentRequirementLine"]


def _constraint(parsed: Any, location: Location) -> Constraint:
    marker = str(parsed.marker or "")
    required = not parsed.is_constraint
    if parsed.link is not None and not str(parsed.specifier or ""):
        return Constraint("from a URL", location, marker=marker, required=required)
    try:
        specifiers = SpecifierSet(str(parsed.specifier or ""))
    except InvalidSpecifier:
        return Constraint(str(parsed.specifier), location, marker=marker, required=required)
    return range_constraint(specifiers, location, marker, required=required)


def _relative_name(file: Path, included: str) -> str:
    """Return an included file's path, relative to the folder of the path that the user passed."""
    path = Path(included)
    try:
        return str(file.parent / path.absolute().relative_to(file.parent.absolute()))
    except ValueError:
        return str(path)
