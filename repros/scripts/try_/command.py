"""A command of the user's, such as `python train.py --epochs 1`, in a copy of the folder that it is started in."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.model.errors import ReprosError

_MOST_FILES, _MOST_BYTES = 2_000, 200 * 10**6
"""Of the folder, which is copied for each run."""
_NOT_COPIED = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class Command:
    """A program of the environment with its arguments, and the files around it."""

    given: tuple[str, ...]
    """The words: `python`, `train.py`, ..."""
    folder: Path
    """The folder that it is started in."""
    files: tuple[Path, ...]
    """The files that are copied, relative to the folder: all but hidden ones, caches and environments."""

    @property
    def name(self) -> str:
        """The words that are no option: `python train.py`."""
        return " ".join(word for word in self.given if not word.startswith("-"))

    @property
    def origin(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.given)

    @property
    def modules(self) -> tuple[str, ...]:
        """None: nobody knows what a command imports before it runs."""
        return ()

    def copy_to(self, folder: Path) -> Path:
        """Copy the files into a folder; :class:`repros.scripts.try_.program.Program` explains it.

        Returns:
            The script, module or code that Python runs, by which the engine tells ranks from their helpers.
        """
        for file in self.files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.folder / file, folder / file)
        return folder / self._ran

    def words(self, python: Path, place: Path) -> list[str]:  # noqa: ARG002 - it runs in the folder, by its own words
        """Return the command, with the environment's own program."""
        program, *others = self.given
        return [str(python.parent / program), *others]

    @property
    def _ran(self) -> str:
        """The word that Python gets: a script of the folder, or what follows `-m` or `-c`."""
        scripts = (word for word in self.given[1:] if word.endswith(".py") and Path(word) in self.files)
        named = self.given[2:3] if self.given[1:2] in {("-m",), ("-c",)} else self.given[:1]
        return next(scripts, named[0] if named else self.given[0])

    def digest(self) -> str:
        """Return a digest of the words and of all files; :class:`repros.scripts.try_.program.Program` explains it."""
        found = hashlib.sha256(repr(self.given).encode())
        for file in self.files:
            found.update(f"\0{file}\0".encode("utf-8", "surrogateescape"))
            found.update((self.folder / file).read_bytes())
        return found.hexdigest()


def read_command(words: Sequence[str], folder: Path) -> Command:
    """Return a command that is to be started in a folder.

    Raises:
        ReprosError: it does not begin with the name of a program, or the folder is too large to be copied.
    """
    if not words or not words[0]:
        raise ReprosError("there is no command after --; expected one such as: -- python train.py")
    if "/" in words[0] or words[0].endswith(".py"):
        problem = f"{words[0]!r} is no program of the environment; give the one that runs it: -- python {words[0]}"
        raise ReprosError(problem)
    return Command(tuple(words), folder, tuple(_find_files(folder)))


def refuse_missing_program(command: Command, python: Path) -> None:
    """Check that an environment has the command's program.

    Args:
        command: the command.
        python: the environment's interpreter.

    Raises:
        ReprosError: it has not.
    """
    if not os.access(python.parent / command.given[0], os.X_OK):
        problem = (
            f"the environment has no program {command.given[0]!r}; begin with python, torchrun or another of its own."
        )
        raise ReprosError(problem)


def _find_files(folder: Path) -> list[Path]:
    """Return the files to copy, in a fixed order.

    Raises:
        ReprosError: they are too many, or too large.
    """
    found, size = list[Path](), 0
    for file in _walk(folder):
        found.append(file.relative_to(folder))
        size += file.stat().st_size
        if len(found) > _MOST_FILES or size > _MOST_BYTES:
            raise ReprosError(
                f"{folder} is copied for each run, and has more than {_MOST_FILES} files or "
                f"{_MOST_BYTES // 10**6} MB; start the command in a folder with its own files alone."
            )
    return sorted(found)


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        folders[:] = [name for name in folders if not _is_left_out(here / name)]
        yield from (here / name for name in files if not name.startswith(".") and (here / name).is_file())


def _is_left_out(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _NOT_COPIED or (folder / "pyvenv.cfg").exists()
