"""Parsers of files with dependencies, one module for each kind, and the conversion of environments."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Protocol

from repros.advise.audit.subject import Subject
from repros.model.errors import ReprosError

DEFAULT_FILES = ("uv.lock", "pylock.toml", "requirements.txt", "pyproject.toml")
"""The default files in a project, the most exact first."""


class SourceReader(Protocol):
    """Parser of one kind of file."""

    def __call__(self, file: Path, /) -> Subject:
        """Parse the file.

        Raises:
            OSError: it cannot be read.
            UnicodeDecodeError: it is not UTF-8.
            ReprosError: it does not have the format of its name.
        """


_READERS = {
    "pyproject.toml": "pyproject",
    "uv.lock": "uv_lock",
    "pylock.toml": "pylock",
    "pylock.*.toml": "pylock",
    "*.txt": "requirements",
    "*.in": "requirements",
}
"""For each pattern of file names, the module with the parser `read_MODULE`, which is imported when needed."""


def find_reader(file: Path) -> SourceReader | None:
    """Return the parser for a file's name."""
    module = next((module for pattern, module in _READERS.items() if fnmatchcase(file.name, pattern)), None)
    if module is None:
        return None
    reader: SourceReader = getattr(import_module(f"{__name__}.{module}"), f"read_{module}")
    return reader


def read_source(file: Path) -> Subject:
    """Parse a file; its name determines the format.

    Raises:
        ReprosError: it cannot be read or parsed, or its name is unknown.
    """
    reader = find_reader(file)
    if reader is None:
        expected = "requirements.txt, pyproject.toml, uv.lock or pylock.toml; 'pip freeze > requirements.txt' makes one"
        raise ReprosError(f"{file} has an unknown format; expected {expected}.")
    try:
        return reader(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ReprosError(f"{file} cannot be read ({reason}).") from error
    except RecursionError as error:
        raise ReprosError(f"{file} cannot be read: it is nested too deeply.") from error


def find_source(folder: Path) -> Path:
    """Return the most exact of a project's files.

    Raises:
        ReprosError: the folder has none.
    """
    for name in DEFAULT_FILES:
        if (folder / name).is_file():
            return folder / name
    raise ReprosError(f"no {', '.join(DEFAULT_FILES)} here; pass a file, or an environment with --python.")
