"""Files next to a script that are not copied for its run: links that leave their folder, and what is no ordinary file.

A link's target would be copied before the sandbox exists, so a script could read any file of the user through a link
next to it. Links are copied as links, so a loop of links is copied as it is. Pipes, sockets and devices have no content
to copy; very large files and very deep folders would be copied before any limit of the run.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_FILES, MOST_BYTES = 2_000, 200 * 10**6
"""Limits of a folder that is copied for each run."""
_MOST_LEVELS = 32
"""Folders within each other that are copied."""


def leaves(path: Path, folder: Path) -> bool:
    """Return whether a path is a link that does not lead, by a relative path, to something below a folder."""
    if not path.is_symlink():
        return False
    target = path.readlink()
    within = Path(os.path.normpath(path.parent / target))
    return target.is_absolute() or not within.is_relative_to(os.path.normpath(folder))


def is_left_out(path: Path, folder: Path) -> bool:
    """Return whether a file or folder below a folder is not copied."""
    if leaves(path, folder):
        return True
    status = path.lstat()
    if stat.S_ISREG(status.st_mode):
        return status.st_size > MOST_BYTES
    if stat.S_ISDIR(status.st_mode):
        return len(path.relative_to(folder).parts) > _MOST_LEVELS
    return not stat.S_ISLNK(status.st_mode)


def find_left_out(paths: Iterable[Path], folder: Path) -> Iterator[Path]:
    """Yield the files and folders among these, and below them, that are not copied."""
    for path in paths:
        if is_left_out(path, folder):
            yield path
        elif path.is_dir() and not path.is_symlink():
            yield from find_left_out(sorted(path.iterdir()), folder)


def find_files(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a file, or those below a folder, that are copied, and links to files."""
    if is_left_out(path, folder):
        return
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            yield from find_files(entry, folder)
    elif path.is_file():
        yield path


def copy(path: Path, target: Path, folder: Path) -> None:
    """Copy a file or folder; links stay links, and hidden files, caches and what is left out are not copied.

    Raises:
        OSError: a file cannot be read or written.
    """

    def left_out(parent: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name.startswith(".") or name == "__pycache__" or is_left_out(Path(parent, name), folder)
        }

    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, target, symlinks=True, ignore=left_out)
    else:
        shutil.copy(path, target, follow_symlinks=False)
