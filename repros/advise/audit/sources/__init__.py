"""Parsers of files with dependencies, one module for each kind, and the conversion of environments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from repros.advise.audit.sources.kinds import REQUIREMENTS, find_kind
from repros.advise.audit.sources.parsing import read_text
from repros.advise.audit.sources.stated import FindReleases, read_stated
from repros.advise.audit.subject import Subject
from repros.model.errors import ReprosError

DEFAULT_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "requirements.txt", "pyproject.toml")
"""The default files in a project, the most exact first."""
STDIN = "standard input"
_EXPECTED = (
    "requirements, a pyproject.toml, a lock of uv, Poetry or PDM, a pylock.toml, the output of 'pip list', "
    "'conda list' or 'conda env export', or the environment of an issue; 'pip freeze > requirements.txt' makes one"
)
_OF_REQUIREMENTS = ("*requirements*", "*constraints*", "*.in")
"""Names of files that are requirements if one of their lines is."""
_ONE_EQUALS = re.compile(
    r"^(?P<place>.+:\d+): '(?P<name>[A-Za-z0-9][\w.-]*(?:\[[^]]*\])?)\s*=\s*(?P<release>\d[^='\s]*)"
)
"""A sentence on a line that is no requirement for want of one `=`."""
_CONTENT = re.compile(r"^\s*[^#\s]", re.MULTILINE)
"""A line that is no comment."""


def read_source(file: Path, find_releases: FindReleases | None = None) -> Subject:
    """Parse a file; its name determines the format, and its content where the name does not.

    Args:
        file: the file.
        find_releases: returns the releases that a text states, for texts that are no requirements.

    Raises:
        ReprosError: it cannot be read or parsed, or names no release.
    """
    try:
        return _read(file, find_releases)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ReprosError(f"{file} cannot be read ({reason}).") from error
    except RecursionError as error:
        raise ReprosError(f"{file} cannot be read: it is nested too deeply.") from error


def _read(file: Path, find_releases: FindReleases | None) -> Subject:
    text = read_text(file)
    kind = find_kind(file.name, text)
    module, _, function = kind.partition(".")
    reader: Callable[[Path], Subject] = getattr(import_module(f"{__name__}.{module}"), function)
    subject = reader(file)
    number = sum(map(len, subject.constraints.values()))
    is_named = any(fnmatchcase(file.name, pattern) for pattern in _OF_REQUIREMENTS)
    is_requirements = kind == REQUIREMENTS and (is_named or len(subject.unparsed) <= number)
    if is_requirements:
        _refuse_one_equals(subject)
    if kind != REQUIREMENTS or (number and is_requirements):
        return subject
    # Most lines are no requirements: an issue, or the environment block of one.
    stated = read_stated(file, find_releases) if find_releases else None
    if stated is None and not number and _CONTENT.search(text):
        first = f" ({subject.unparsed[0]})" if subject.unparsed else ""
        raise ReprosError(f"no line of {file} is a requirement or states a release{first}; expected {_EXPECTED}.")
    return stated or subject


def _refuse_one_equals(subject: Subject) -> None:
    """Refuse requirements with a line such as `lightning=2.4.0`, whose package an audit would not compare."""
    for match in filter(None, map(_ONE_EQUALS.match, subject.unparsed)):
        given, meant = (f"{match['name']}{equals}{match['release']}" for equals in ("=", "=="))
        raise ReprosError(f"{match['place']}: {given!r} is not a requirement; write '{meant}'.")


def read_piped(raw: bytes, find_releases: FindReleases | None = None) -> Subject:
    """Parse what standard input has, of any kind.

    Raises:
        ReprosError: it cannot be parsed, or names no release.
    """
    import tempfile  # noqa: PLC0415 - for a pipe alone

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        file.write_bytes(raw)
        try:
            subject = read_source(file, find_releases)
        except ReprosError as error:
            raise ReprosError(str(error).replace(str(file), STDIN)) from error
    constraints = {
        name: tuple(replace(one, location=replace(one.location, file=STDIN)) for one in group)
        for name, group in subject.constraints.items()
    }
    unparsed = tuple(problem.replace(str(file), STDIN) for problem in subject.unparsed)
    return replace(subject, name=STDIN, constraints=constraints, unparsed=unparsed)


def find_source(folder: Path) -> Path:
    """Return the most exact of a project's files.

    Raises:
        ReprosError: the folder has none.
    """
    for name in DEFAULT_FILES:
        if (folder / name).is_file():
            return folder / name
    where = "here" if folder == Path() else f"in {folder}"
    raise ReprosError(f"no {', '.join(DEFAULT_FILES)} {where}; pass a file, or an environment with --python.")
