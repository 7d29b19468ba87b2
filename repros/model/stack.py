"""One set of library versions, locked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from repros.model.lock import Pin, read_lock


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
