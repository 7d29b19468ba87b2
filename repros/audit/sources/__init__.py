"""Sources of subjects: one module for each kind of file, and one for environments."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from repros.audit.sources.pylock import read_pylock
from repros.audit.sources.pyproject import read_pyproject
from repros.audit.sources.requirements import read_requirements
from repros.audit.sources.uv_lock import read_uv_lock
from repros.audit.subject import Subject
from repros.errors import ReprosError

DEFAULT_FILES = ("uv.lock", "pylock.toml", "requirements.txt", "pyproject.toml")
"""The files to look for in a project when the user names none, the most exact first."""


class SourceReader(Protocol):
    """Parser of one kind of file."""

    def __call__(self, file: Path, /) -> Subject:
        """Parse the file.

        Raises:
            OSError: it cannot be read.
            UnicodeDecodeError: it is not UTF-8.
            ReprosError: it does not have the format that its name promises.
        """


READERS: Mapping[str, SourceReader] = {
    "pyproject.toml": read_pyproject,
    "uv.lock": read_uv_lock,
    "pylock.toml": read_pylock,
    "pylock.*.toml": read_pylock,
    "*.txt": read_requirements,
    "*.in": read_requirements,
}
"""The parsers by pattern of the file's name."""


def read_source(file: Path) -> Subject:
    """Parse a file of a kind that its name tells.

    Raises:
        ReprosError: it cannot be read or parsed, or is of an unknown kind.
    """
    reader = next((reader for pattern, reader in READERS.items() if fnmatchcase(file.name, pattern)), None)
    if reader is None:
        expected = "requirements.txt, pyproject.toml, uv.lock or pylock.toml; 'pip freeze > requirements.txt' makes one"
        raise ReprosError(f"{file} is of an unknown kind; expected {expected}.")
    try:
        return reader(file)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ReprosError(f"{file} cannot be read ({why}).") from error
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
    raise ReprosError(f"no {', '.join(DEFAULT_FILES)} here; name a file, or an environment with --python.")
