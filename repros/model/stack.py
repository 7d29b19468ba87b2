"""Stacks: sets of library versions, each with a lock file.

A lock has one distribution per line, `name==version`, with a comment that names what requires it.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model.errors import ReprosError

_PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;#\\]+)(?:.*?# via (?P<via>.+))?")


@dataclass(frozen=True)
class Pin:
    """One locked distribution."""

    name: str
    """Canonical name."""
    version: str
    required_by: frozenset[str] = frozenset()
    """Names of the distributions that require it; `the stack itself` for the stack's own requirements."""

    def __str__(self) -> str:
        """Return the requirement: `torch==2.1.2`."""
        return f"{self.name}=={self.version}"


def read_lock(file: Path) -> dict[str, Pin]:
    """Return the locked distributions by canonical name.

    Raises:
        ReprosError: the file is missing or not UTF-8.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        name = file.name.removesuffix(".lock.txt")
        problem = f"stack {name} has no lock at {file}; make it with 'repros stacks --lock {name}'."
        raise ReprosError(problem) from error
    pins = (_pin(match) for line in lines if (match := _PIN.match(line)))
    return {pin.name: pin for pin in pins}


def _pin(match: re.Match[str]) -> Pin:
    required_by = frozenset(filter(None, (match["via"] or "").split(", ")))
    return Pin(canonicalize_name(match["name"]), match["version"], required_by)


@dataclass(frozen=True)
class Size:
    """Measured size of an environment, in bytes."""

    download: int
    """Total size of the wheels."""
    unpacked: int
    """Total size of the files in the wheels: the disk space of the environment."""


@dataclass(frozen=True)
class Stack:
    """One set of library versions."""

    name: str
    """`2023-12`, the release month of its torch; the newest stack is `current`."""
    about: str
    """One line: why this stack exists."""
    python: str
    """Python version of the lock: `3.11`."""
    requirements: tuple[Requirement, ...]
    """Direct requirements; the lock resolves them."""
    until: dt.date
    """The lock contains no release after this day, which makes the resolution repeatable."""
    lock: Path
    """The lock file: every distribution except torch's own CUDA ones."""
    cuda: Size | None = None
    """With torch's CUDA build; None if not measured."""
    cpu: Size | None = None
    """With torch's CPU build; None if not measured."""
    torch_build: str = "auto"
    """The project's setting: torch's `cpu` or `cuda` build, or `auto`, the machine's."""

    @property
    def pins(self) -> dict[str, Pin]:
        """The locked distributions by canonical name.

        Raises:
            ReprosError: there is no lock yet.
        """
        return read_lock(self.lock)
