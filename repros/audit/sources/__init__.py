"""Files and environments -> subjects: a file per kind of source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from repros.audit.sources import environment, pylock, pyproject, requirements, uv_lock
from repros.audit.subject import AuditError, Subject

__all__ = ["FOUND", "environment", "find", "read"]

FOUND = ("uv.lock", "pylock.toml", "requirements.txt", "pyproject.toml")
"""What a project is audited by when nothing is named: the first of these that is there, most exact first."""


def read(file: Path) -> Subject:
    """Read a file of whatever kind its name says.

    Raises:
        AuditError: it is not there, cannot be read, or is of no known kind.
    """
    try:
        return _reader(file)(file)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise AuditError(f"{file} cannot be read ({why}).") from error


def find(folder: Path) -> Path:
    """Return the file that a project is audited by.

    Raises:
        AuditError: there is none.
    """
    for name in FOUND:
        if (folder / name).is_file():
            return folder / name
    raise AuditError(f"no {', '.join(FOUND)} here; name a file, or an environment with --python.")


def _reader(file: Path) -> Callable[[Path], Subject]:
    name = file.name
    if name == "pyproject.toml":
        return pyproject.read
    if name == "uv.lock":
        return uv_lock.read
    if name == "pylock.toml" or (name.startswith("pylock.") and file.suffix == ".toml"):
        return pylock.read
    if file.suffix in {".txt", ".in"}:
        return requirements.read
    expected = "requirements.txt, pyproject.toml, uv.lock or pylock.toml; 'pip freeze > requirements.txt' makes one"
    raise AuditError(f"{file} is of no known kind; expected {expected}.")
