"""The commands of the two programs of a comparison, with ranks and interpreters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from repros.model.errors import ReprosError

_PYTHON = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class ProgramCommand:
    """A program to run: its words, and its interpreter."""

    command: tuple[str, ...]
    python: Path | None = None
    """An interpreter whose folder is first on the program's PATH."""

    def on_ranks(self, number: int) -> ProgramCommand:
        """Return the command that launches it with torchrun, on this many local ranks, with its interpreter's torch."""
        first = self.command[0]
        python = first if _PYTHON.fullmatch(PurePath(first).name) else "python"
        launcher = (python, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0")
        return replace(self, command=(*launcher, f"--nproc-per-node={number}", "--no-python", *self.command))

    def with_python(self, python: Path) -> ProgramCommand:
        """Return it with another interpreter.

        Raises:
            ReprosError: its command names an interpreter by a path.
        """
        first = PurePath(self.command[0])
        if first.name != str(first) and _PYTHON.fullmatch(first.name):
            raise ReprosError(f"the command names its own interpreter, {first}; start it with python to use --stack.")
        return replace(self, python=python)


def split_commands(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the two commands of `COMMAND -- COMMAND`; a single command twice.

    Raises:
        ReprosError: a command is empty.
    """
    words = tuple(words)
    if "--" not in words:
        return words, words
    separator = words.index("--")
    first, second = words[:separator], words[separator + 1 :]
    if not first or not second:
        raise ReprosError("a command is empty; expected -- COMMAND -- COMMAND.")
    return first, second
