"""The two programs of a comparison: their commands, their ranks, their interpreters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from repros.model.errors import ReprosError

_PYTHON = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class Program:
    """A program to run."""

    command: tuple[str, ...]
    python: Path | None = None
    """An interpreter whose folder comes first on its PATH."""

    def on_ranks(self, number: int) -> Program:
        """Return it as torchrun starts it on so many ranks of this machine, by the torch of its own interpreter."""
        first = self.command[0]
        python = first if _PYTHON.fullmatch(PurePath(first).name) else "python"
        launcher = (python, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0")
        return replace(self, command=(*launcher, f"--nproc-per-node={number}", "--no-python", *self.command))

    def by(self, python: Path) -> Program:
        """Return it with another interpreter.

        Raises:
            ReprosError: its command names an interpreter by a path.
        """
        first = PurePath(self.command[0])
        if first.name != str(first) and _PYTHON.fullmatch(first.name):
            raise ReprosError(f"{first} is an interpreter of its own; begin the command with python to use --stack.")
        return replace(self, python=python)


def split_commands(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the two commands of `COMMAND -- COMMAND`; the same one twice where there is one alone.

    Raises:
        ReprosError: one is empty.
    """
    words = tuple(words)
    if "--" not in words:
        return words, words
    place = words.index("--")
    first, second = words[:place], words[place + 1 :]
    if not first or not second:
        raise ReprosError("a command is empty; expected -- COMMAND -- COMMAND.")
    return first, second
