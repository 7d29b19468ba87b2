"""Lock files of stacks: one distribution per line, `name==version`, with a comment that names what requires it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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
