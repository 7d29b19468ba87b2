"""Symbolic links among the files that are copied for a run: one that leaves the copied folder is left out.

A link's target would be copied before the sandbox exists, so a script could read any file of the user through a link
next to it. Links are copied as links, so a loop of links is copied as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path


def leaves(path: Path, folder: Path) -> bool:
    """Return whether a path is a link that does not lead, by a relative path, to something below a folder."""
    if not path.is_symlink():
        return False
    target = path.readlink()
    within = Path(os.path.normpath(path.parent / target))
    return target.is_absolute() or not within.is_relative_to(os.path.normpath(folder))


def find_leaving(paths: Iterable[Path], folder: Path) -> Iterator[Path]:
    """Yield the links among these files and folders, and below them, that leave the folder."""
    for path in paths:
        if leaves(path, folder):
            yield path
        elif path.is_dir() and not path.is_symlink():
            yield from find_leaving(sorted(path.iterdir()), folder)


def copy(path: Path, target: Path, folder: Path) -> None:
    """Copy a file or folder; links stay links, and those that leave the folder, hidden files and caches are left out.

    Raises:
        OSError: a file cannot be read or written.
    """

    def left_out(parent: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name.startswith(".") or name == "__pycache__" or leaves(Path(parent, name), folder)
        }

    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, target, symlinks=True, ignore=left_out)
    else:
        shutil.copy(path, target, follow_symlinks=False)
