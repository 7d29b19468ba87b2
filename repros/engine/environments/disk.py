"""The disk space of the cache: what is in it, how large it is, when it was last used, and what may go."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from repros.engine.environments.store import environments_root, remove_left, used_file
from repros.engine.environments.use import drop_folder_unless_held
from repros.engine.environments.uv import OWN_CACHE
from repros.engine.environments.uv_cache import (
    cached_wheels,
    distributions_in,
    remove_half_made,
    remove_unlinked,
    uv_cache_folder,
)
from repros.model.cache import cache_folder
from repros.model.stack import Pin

Files = Mapping[tuple[int, int], int]
"""Bytes on disk of each file and folder, by device and inode: one with several names is in it once."""

_BLOCK = 512
"""Bytes of a block in `st_blocks`, whatever the file system's own blocks are."""


class Kind(StrEnum):
    """A kind of data in the cache."""

    ENVIRONMENT = "environment"
    ACCELERATOR = "accelerator"
    """A compiled simulated accelerator."""
    SNAPSHOTS = "snapshots"
    WHEELS = "wheels"
    """Wheels in uv's cache."""
    OTHER = "other"


@dataclass(frozen=True)
class Part:
    """One part of the cache, with its disk space."""

    kind: Kind
    path: Path
    size: int
    """Bytes on disk; a file with several names counts once."""
    own: int
    """Bytes of the files that no other part has."""
    last_used: dt.date | None = None
    """The day of its last use; None for what is never removed for want of use."""

    def is_unused(self, days: int, today: dt.date) -> bool:
        """Return whether it may go because nothing has used it for a number of days."""
        return self.last_used is not None and (today - self.last_used).days >= days


@dataclass(frozen=True)
class DiskUsage:
    """The disk space of the whole cache."""

    parts: tuple[Part, ...]
    total: int
    """Bytes on disk; a file that several parts have counts once."""


def measure_disk(pins: Iterable[Pin] = ()) -> DiskUsage:
    """Return the disk space of the cache, and of the wheels in uv's cache that belong to it.

    A wheel belongs to it if an environment has its distribution or a stack pins it. Its files are usually those of the
    environments, as hard links.

    Args:
        pins: what stacks pin.
    """
    files = {place: _files(place[1]) for place in _places()}
    names = {name for kind, root in files if kind is Kind.ENVIRONMENT for name in _distributions(root)}
    names |= {f"{pin.name.replace('-', '_')}-{pin.version}" for pin in pins}
    cache = uv_cache_folder(_make(cache_folder()))
    archives = [wheel.archive for wheel in cached_wheels(cache) if wheel.distribution in names]
    linked = Counter(inode for found in files.values() for inode in found)
    files[Kind.WHEELS, cache] = {inode: size for archive in archives for inode, size in _files(archive).items()}
    parts = []
    for (kind, path), found in files.items():
        others = int(kind is not Kind.WHEELS)
        own = sum(size for inode, size in found.items() if linked[inode] == others)
        parts.append(Part(kind, path, sum(found.values()), own, _last_used(kind, path)))
    every = {inode: size for found in files.values() for inode, size in found.items()}
    return DiskUsage(tuple(parts), sum(every.values()))


def clean(days: int, today: dt.date) -> Iterator[Part]:
    """Remove what was not used for a number of days and what is half made; yield each part that is removed.

    An environment in use stays. The wheels of a removed environment leave uv's cache as well, unless an environment of
    any project is linked to them or a uv is running.

    Args:
        days: number of days; 0 removes all that is not in use now.
        today: the date.
    """
    left = {*remove_left()}
    names = set[str]()
    for part in measure_disk().parts:
        if not part.is_unused(days, today) or part.path in left:
            continue
        distributions = _distributions(part.path)
        if part.kind is Kind.ACCELERATOR:
            shutil.rmtree(part.path, ignore_errors=True)
        elif not drop_folder_unless_held(part.path):
            continue
        names |= distributions
        yield part
    folder = _make(cache_folder())
    remove_unlinked(uv_cache_folder(folder), names)
    remove_half_made(folder)


def _places() -> Iterator[tuple[Kind, Path]]:
    """Yield the parts of the cache folder."""
    kinds = {environments_root().name: Kind.ENVIRONMENT, "sim": Kind.ACCELERATOR}
    for folder in sorted(cache_folder().glob("*")):
        if folder.name in kinds:
            yield from ((kinds[folder.name], path) for path in sorted(folder.glob("*")) if path.is_dir())
        elif folder.name != OWN_CACHE:
            yield (Kind.SNAPSHOTS if folder.name == "snapshots" else Kind.OTHER), folder


def _files(root: Path) -> Files:
    """Return the files and folders below a folder; what vanishes meanwhile is left out."""
    found = {}
    with contextlib.suppress(OSError):
        status = root.lstat()
        found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    pending = [str(root)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return found


def _distributions(root: Path) -> set[str]:
    return {name for folder in root.glob("lib/python*/site-packages") for name in distributions_in(folder)}


def _last_used(kind: Kind, path: Path) -> dt.date | None:
    """Return the day of the last use: of an environment by its lock, of an accelerator by when its files were read."""
    if kind is Kind.ENVIRONMENT:
        files = [used_file(path), path]
    elif kind is Kind.ACCELERATOR:
        files = [path, *path.glob("*")]
    else:
        return None
    seconds = [max(s.st_mtime, s.st_atime if file != path else 0) for file in files for s in _status(file)]
    return dt.datetime.fromtimestamp(max(seconds)).astimezone().date() if seconds else None


def _status(file: Path) -> list[os.stat_result]:
    try:
        return [file.stat()]
    except OSError:
        return []


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
