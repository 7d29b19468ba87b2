"""A command of the user, such as `python train.py --epochs 1`, in a copy of its working folder."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.model.errors import ReprosError
from repros.scripts.try_ import links
from repros.scripts.try_.needs import Needs

_NOT_COPIED = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class Command:
    """A program of the environment with its arguments, and the files of its working folder."""

    given: tuple[str, ...]
    """The words: `python`, `train.py`, ..."""
    folder: Path
    """The working folder."""
    files: tuple[Path, ...]
    """The files that are copied, relative to the folder: all except hidden ones, caches and environments."""
    left_out: tuple[Path, ...] = ()
    """Links in the folder that leave it, and what is no ordinary file; they are not copied."""

    @property
    def name(self) -> str:
        """The words without options: `python train.py`."""
        return " ".join(word for word in self.given if not word.startswith("-"))

    @property
    def origin(self) -> str:
        """The command, quoted for a shell."""
        return shlex.join(self.given)

    @property
    def needs(self) -> Needs:
        """Empty: the imports of a command are unknown before it runs."""
        return Needs(())

    def copy_to(self, folder: Path) -> Path:
        """Copy the files into a folder.

        Returns:
            The script, module or code that Python runs, by which the engine tells ranks from their helpers.

        Raises:
            OSError: a file cannot be read or written.
        """
        for file in self.files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            links.copy(self.folder / file, folder / file, self.folder)
        return folder / self._ran

    def words(self, python: Path, path: Path) -> list[str]:  # noqa: ARG002 - the command names its script itself
        """Return the command, with the environment's own program."""
        program, *others = self.given
        return [str(python.parent / program), *others]

    @property
    def _ran(self) -> str:
        """The argument that Python runs: a script of the folder, or the one after `-m` or `-c`."""
        scripts = (word for word in self.given[1:] if word.endswith(".py") and Path(word) in self.files)
        named = self.given[2:3] if self.given[1:2] in {("-m",), ("-c",)} else self.given[:1]
        return next(scripts, named[0] if named else self.given[0])

    def digest(self) -> str:
        """Return a digest of the words and of all files.

        Raises:
            OSError: a file cannot be read.
        """
        digest = hashlib.sha256(repr(self.given).encode())
        for file in self.files:
            digest.update(f"\0{file}\0".encode("utf-8", "surrogateescape"))
            digest.update((self.folder / file).read_bytes())
        return digest.hexdigest()


def read_command(words: Sequence[str], folder: Path) -> Command:
    """Return a command to start in a folder.

    Raises:
        ReprosError: it does not begin with the name of a program, or the folder is too large to be copied.
    """
    if not words or not words[0]:
        raise ReprosError("there is no command after --; expected one such as: -- python train.py")
    if "/" in words[0] or words[0].endswith(".py"):
        problem = (
            f"{words[0]!r} is not installed in the environment; name the program that runs it: -- python {words[0]}"
        )
        raise ReprosError(problem)
    files = _find_files(folder)
    left_out = tuple(file for file in files if links.is_left_out(folder / file, folder))
    return Command(tuple(words), folder, tuple(file for file in files if file not in left_out), left_out)


def refuse_missing_program(command: Command, python: Path) -> None:
    """Refuse a command whose program an environment lacks.

    Args:
        command: the command.
        python: the environment's interpreter.

    Raises:
        ReprosError: the environment lacks it.
    """
    if not os.access(python.parent / command.given[0], os.X_OK):
        problem = (
            f"{command.given[0]!r} is not installed in the environment; begin with python, torchrun or another of its "
            "programs."
        )
        raise ReprosError(problem)


def _find_files(folder: Path) -> list[Path]:
    """Return the files to copy, in a fixed order.

    Raises:
        ReprosError: there are too many, or they are too large.
    """
    files, size = list[Path](), 0
    for file in _walk(folder):
        files.append(file.relative_to(folder))
        size += file.stat().st_size
        if len(files) > links.MOST_FILES or size > links.MOST_BYTES:
            raise ReprosError(
                f"{folder} is copied for each run, and has more than {links.MOST_FILES} files or "
                f"{links.MOST_BYTES // 10**6} MB; start the command in a folder that contains only its own files."
            )
    return sorted(files)


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        folders[:] = [name for name in folders if not _is_skipped(here / name)]
        yield from (here / name for name in files if not name.startswith(".") and (here / name).is_file())


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _NOT_COPIED or (folder / "pyvenv.cfg").exists()
