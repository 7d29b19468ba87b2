"""The files that are copied for a run: links that leave the copied folder, and what is no file, are left out.

A link's target would be copied before the sandbox exists, so a script could read any file of the user through a link
next to it. Links are copied as links, so a loop of links is copied as it is. Pipes, sockets and devices hold nothing
to copy. All of it happens before any limit of the sandbox, so the copied files have limits of their own.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_FILES, MOST_BYTES = 2_000, 200 * 10**6
"""Limits of a folder that is copied for each run."""
MOST_LEVELS = 100
"""Folders within folders; Python copies a folder by recursion."""


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


def walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder but hidden folders and caches; follow no link, and need no recursion.

    Raises:
        OSError: a folder cannot be read.
    """
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if not (is_folder and _is_skipped(entry.name)):
                    yield Path(entry.path)
                    folders += [Path(entry.path)] if is_folder else []


def copy(path: Path, target: Path, folder: Path) -> None:
    """Copy a file or folder; links stay links.

    Left out are links that leave the folder, hidden files, caches, and what is neither a file nor a folder.

    Raises:
        OSError: a file cannot be read or written.
    """

    def left_out(parent: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if _is_skipped(name) or leaves(Path(parent, name), folder) or _is_special(Path(parent, name))
        }

    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, target, symlinks=True, ignore=left_out)
    else:
        shutil.copy(path, target, follow_symlinks=False)


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _is_special(path: Path) -> bool:
    kind = path.lstat().st_mode
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind))
