"""What `repros try` and `repros bisect` run of somebody: a script (:mod:`.script`), or a command (:mod:`.command`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Program(Protocol):
    """A program that is copied into a folder of its own for each run."""

    @property
    def name(self) -> str:
        """A short name: `train.py`."""

    @property
    def origin(self) -> str:
        """What the user calls it, for sentences."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules outside the standard library without which it cannot begin, in their order."""

    def copy_to(self, folder: Path) -> Path:
        """Write it, and what it needs beside it, into a folder; return its path there.

        Raises:
            OSError: a file cannot be read or written.
        """

    def words(self, python: Path, place: Path) -> list[str]:
        """Return the command that starts it.

        Args:
            python: the interpreter of the environment.
            place: where :meth:`copy_to` has put it.
        """

    def digest(self) -> str:
        """Return a digest of all that is copied and of the words that start it, whatever the environment.

        Raises:
            OSError: a file cannot be read.
        """
