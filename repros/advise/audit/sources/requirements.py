"""Parser of `requirements.txt` with everything that pip allows in it: `-r`, `-c`, markers, hashes, URLs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pip_requirements_parser import RequirementsFile

from repros.advise.audit.sources.parsing import group_by_package, is_excessive, quote, range_constraint, read_text
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError

_INCLUDES = {"requirements": "-r", "constraints": "-c"}
"""The parser's names of the options that include another file."""
_DEEPEST = 50
"""Files that include one another."""


def read_requirements(file: Path) -> Subject:
    """Parse a file and the files that it includes, each once.

    Raises:
        ReprosError: an included file cannot be read, or the parser fails.
    """
    reading = _Reading(file)
    constraints = list(reading.constraints(file, is_constraint=False))
    return Subject(str(file), group_by_package(constraints), complete=False, unparsed=tuple(reading.unparsed))


@dataclass
class _Reading:
    """The reading of one file with its includes."""

    first: Path
    unparsed: list[str] = field(default_factory=list)
    visited: set[tuple[Path, bool]] = field(default_factory=set)

    def constraints(self, file: Path, *, is_constraint: bool, depth: int = 0) -> Iterator[tuple[str, Constraint]]:
        """Yield the packages of a file in its order, those of an included file in the place of the include.

        Args:
            file: the file.
            is_constraint: whether it was included by `-c`.
            depth: how many files include it.
        """
        self.visited.add((file.resolve(), is_constraint))
        for found in _parse(file, is_constraint=is_constraint):
            line = found.requirement_line
            location = Location(_relative_name(self.first, line.filename), line.line_number)
            if type(found).__name__ == "OptionLine":
                for option, names in found.options.items():
                    for name in names if option in _INCLUDES else ():
                        included = option == "constraints" or is_constraint
                        yield from self._include(name, file, location, is_constraint=included, depth=depth)
            elif getattr(found, "error_message", None) is not None:
                problem = str(found.error_message).splitlines()[0].strip(": ")
                self.unparsed.append(f"{location}: {quote(line.line.strip())} ({problem[:_LONGEST_PROBLEM]})")
            elif found.name is None:
                self.unparsed.append(f"{location}: {line.line[:_LONGEST_PROBLEM]} does not name its package")
            elif is_excessive(f"{found.specifier or ''}{found.marker or ''}"):
                self.unparsed.append(f"{location}: {quote(line.line.strip())} is longer than a requirement can be")
            else:
                yield found.name, _constraint(found, location)

    def _include(
        self, name: str, file: Path, location: Location, *, is_constraint: bool, depth: int
    ) -> Iterator[tuple[str, Constraint]]:
        """Yield the packages of an included file; nothing is fetched, and nothing is read twice."""
        if "://" in name or name.startswith("file:"):
            self.unparsed.append(f"{location}: {quote(name)} is an address, which is not fetched")
            return
        included = file.parent / name
        try:
            if (included.resolve(), is_constraint) in self.visited:
                return
            if depth >= _DEEPEST:
                raise ReprosError(f"{location}: more than {_DEEPEST} files include one another.")
            yield from self.constraints(included, is_constraint=is_constraint, depth=depth + 1)
        except (OSError, ValueError) as error:  # a name with a null byte, a file that is not UTF-8
            why = getattr(error, "strerror", None) or ("not UTF-8 text" if isinstance(error, UnicodeError) else error)
            raise ReprosError(f"{location}: the included file {quote(name)} cannot be read ({why}).") from error


_LONGEST_PROBLEM = 200


def _parse(file: Path, *, is_constraint: bool) -> list[Any]:
    """Return the parsed lines of one file but its comments.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        ReprosError: the parser fails.
    """
    read_text(file)  # the parser's own errors have neither the file's name nor a way out
    try:
        lines = list(RequirementsFile.parse(str(file), include_nested=False, is_constraint=is_constraint))
    except Exception as error:  # whatever a parser of others makes of hostile text
        raise ReprosError(f"{file} cannot be parsed as requirements ({type(error).__name__}: {error}).") from error
    return [line for line in lines if type(line).__name__ != "CommentRequirementLine"]


def _constraint(found: Any, location: Location) -> Constraint:
    marker = str(found.marker or "")
    required = not found.is_constraint
    if found.link is not None and not str(found.specifier or ""):
        return Constraint("from a URL", location, marker=marker, required=required)
    try:
        specifiers = SpecifierSet(str(found.specifier or ""))
    except InvalidSpecifier:
        return Constraint(str(found.specifier), location, marker=marker, required=required)
    return range_constraint(specifiers, location, marker, required=required)


def _relative_name(file: Path, included: str) -> str:
    """Return an included file's path, relative to the same folder as the path that the user gave."""
    path = Path(included)
    try:
        return str(file.parent / path.absolute().relative_to(file.parent.absolute()))
    except ValueError:
        return str(path)
