"""The paths that a script sees: what it reads and changes, the links that lead there, and what root alone may read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_LINKS = 40
"""Links on the way to a path; the kernel follows as many."""
_SETTINGS_OF_THE_SYSTEM = Path("/etc")


@dataclass(frozen=True)
class Paths:
    """The paths that a script sees; all others do not exist for it."""

    readable: tuple[Path, ...]
    """Files and folders, with everything below them, without links on the way."""
    writable: tuple[Path, ...]
    links: dict[Path, Path]
    """Links outside these folders, with their targets."""
    hidden: tuple[Path, ...]
    """Files and folders within the readable ones that look empty."""


def find_paths(readable: Iterable[Path], writable: Iterable[Path]) -> Paths:
    """Return the paths that a script sees, if it may read and change what is below others.

    Args:
        readable: files and folders; those that do not exist are left out.
        writable: folders, which may be made later.
    """
    links: dict[Path, Path] = {}
    may_read = {path for path in (_follow(path, links) for path in readable) if path.exists()}
    may_read -= {path for path in may_read if may_read & {*path.parents}}
    may_write = {_follow(path, links) for path in writable}
    folders = may_read | may_write
    outside = {path: target for path, target in links.items() if not folders & {*path.parents}}
    hidden = tuple(_only_for_root(_SETTINGS_OF_THE_SYSTEM)) if os.geteuid() == 0 else ()
    return Paths(tuple(sorted(may_read)), tuple(sorted(may_write)), outside, hidden)


def _follow(path: Path, links: dict[Path, Path]) -> Path:
    """Return a path without links, and add those on the way."""
    here, parts, found = Path("/"), list(path.absolute().parts[1:]), 0
    while parts:
        step = here.parent if (part := parts.pop(0)) == ".." else here / part
        if found < _MOST_LINKS and step.is_symlink():
            found += 1
            links[step] = target = step.readlink()
            here, parts = here if not target.is_absolute() else Path("/"), [*target.parts, *parts]
            parts = [part for part in parts if part != "/"]
        else:
            here = step
    return here


def _only_for_root(folder: Path) -> Iterator[Path]:
    """Yield the files and folders below one that others than their owner and group cannot read, such as keys."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            continue
        if not mode & stat.S_IROTH:
            yield Path(entry.path)
        elif stat.S_ISDIR(mode):
            yield from _only_for_root(Path(entry.path))
