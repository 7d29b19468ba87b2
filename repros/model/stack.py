"""One set of library versions, locked."""

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
    """One distribution of a lock."""

    name: str
    """Canonical name of the distribution."""
    version: str
    required_by: frozenset[str] = frozenset()
    """Names of the distributions that need it; `the stack itself` for what the stack names."""

    def __str__(self) -> str:
        """Return it as a requirement: `torch==2.1.2`."""
        return f"{self.name}=={self.version}"


def read_lock(file: Path) -> dict[str, Pin]:
    """Return the distributions of a lock by their canonical names.

    Raises:
        ReprosError: there is no such file.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        name = file.name.removesuffix(".lock.txt")
        problem = f"stack {name} has no lock at {file}; make it with 'repros stacks --lock {name}'."
        raise ReprosError(problem) from error
    pins = (_pin(found) for line in lines if (found := _PIN.match(line)))
    return {pin.name: pin for pin in pins}


def _pin(found: re.Match[str]) -> Pin:
    required_by = frozenset(filter(None, (found["via"] or "").split(", ")))
    return Pin(canonicalize_name(found["name"]), found["version"], required_by)


@dataclass(frozen=True)
class Size:
    """Measured size of an environment, in bytes."""

    download: int
    """Sum of the wheels' sizes."""
    unpacked: int
    """Sum of the sizes of the files in the wheels; what the environment takes on disk."""


@dataclass(frozen=True)
class Stack:
    """One set of library versions."""

    name: str
    """`2023-12`, the month in which its torch was new; the newest stack is `current`."""
    about: str
    """One line: why this stack exists."""
    python: str
    """Python version that the lock was made for: `3.11`."""
    requirements: tuple[Requirement, ...]
    """The versions that matter; everything else in the lock follows from them."""
    until: dt.date
    """The lock contains nothing released after this day, so that it can be resolved again."""
    lock: Path
    """Every distribution but torch's own CUDA ones, one `name==version` per line."""
    cuda: Size | None = None
    """With torch's CUDA build; None where it has not been measured."""
    cpu: Size | None = None
    """With torch's CPU build; None where it has not been measured."""

    @property
    def pins(self) -> dict[str, Pin]:
        """The distributions of the lock, by their canonical names.

        Raises:
            ReprosError: there is no lock yet.
        """
        return read_lock(self.lock)
