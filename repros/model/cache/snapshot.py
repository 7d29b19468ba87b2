"""Snapshots: a value parsed from many files, cached in one file until one of them changes."""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from repros.model.cache import VARIABLE, cache_folder
from repros.model.errors import ReprosError

T = TypeVar("T")

_ENDING = ".repros-snapshot"
"""Suffix of snapshot files; other files in the folder are left alone."""
_MAX_SNAPSHOTS = 32
"""Newest snapshots of one name that are retained; older ones may belong to deleted checkouts."""


def remember(
    name: str,
    files: Iterable[str | Path],
    read: Callable[[], T],
    key: str = "",
    holds: Callable[[T], bool] = lambda _: True,
) -> T:
    """Return the value of `read`, from its snapshot if no file has changed since the snapshot was written.

    A file counts as changed if its size, inode, mtime or ctime differs, or if it was created or deleted. A snapshot
    that is damaged or owned by another user is ignored. If the cache folder is not writable, `read` is always called.

    Args:
        name: the kind of value, one word; part of the file name.
        files: all files that the value depends on: the input files and the code that parses them.
        key: all other inputs of the value.
        read: computes the value, which must be picklable; its exceptions propagate and are not cached.
        holds: whether a value may be cached, and whether a cached one is still valid.
    """
    paths = sorted({str(file) for file in files})
    state = _encoded(sys.version, key, *map(_state, paths))
    try:
        file = _folder() / f"{name}-{zlib.crc32(_encoded(*paths)):08x}{_ENDING}"
    except (ReprosError, RuntimeError, OSError):  # no cache folder; callers that need one report it
        return read()
    with suppress(Exception):  # whatever reading a damaged pickle raises
        cached: T = _load(file, state)
        if holds(cached):
            return cached
    value = read()
    if holds(value):
        with suppress(OSError):
            _save(file, state, value)
    return value


def files_below(folder: Path, suffix: str) -> Iterator[str]:
    """Yield the files below a folder whose names have a suffix, as strings; for a file, yield the file itself."""
    if not folder.is_dir():
        yield str(folder)
        return
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # a folder that cannot be read has no files
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith(suffix):
                    yield entry.path


def _folder() -> Path:
    """Return the snapshot folder; on Linux without importing platformdirs, which is slower than reading a snapshot."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if sys.platform != "linux" or os.environ.get(VARIABLE) or not caches.startswith(("/", "~/")):
        return cache_folder() / "snapshots"
    return Path(caches).expanduser() / "repros" / "snapshots"


def _encoded(*texts: str) -> bytes:
    return "\0".join(texts).encode("utf-8", "surrogateescape")


def _state(file: str) -> str:
    try:
        status = os.stat(file)  # noqa: PTH116 - one of hundreds
    except OSError as error:
        return f"{file} {error.errno}"
    return f"{file} {status.st_size} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"


def _load(file: Path, state: bytes) -> Any:
    """Return the value of the snapshot of this state.

    Raises:
        Exception: of any class, if there is no valid snapshot.
    """
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_uid != os.geteuid():
            raise ValueError
        whole = opened.read()
    head, data = _head(state), memoryview(whole)[_HEAD_SIZE + len(state) :]
    if not whole.startswith(head + zlib.crc32(data).to_bytes(4, "big") + state):
        raise ValueError
    # The folder belongs to the user; the compiled accelerator next to it is executed as well.
    return pickle.loads(data)  # noqa: S301


def _head(state: bytes) -> bytes:
    return len(state).to_bytes(8, "big")


_HEAD_SIZE = 8 + 4
"""Bytes before the state: its length, and the checksum of the value."""


def _save(file: Path, state: bytes, value: Any) -> None:
    """Write a snapshot atomically, and delete the oldest ones.

    Raises:
        OSError: it cannot be written; no partial file remains.
    """
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(_head(state) + zlib.crc32(data).to_bytes(4, "big") + state + data)
        temporary.replace(file)
    except BaseException:  # including an interrupt
        temporary.unlink(missing_ok=True)
        raise
    # Includes the temporary files of killed processes, whose names continue after the suffix.
    own = file.parent.glob(f"{file.name.partition('-')[0]}-*{_ENDING}*")
    for other in sorted(own, key=lambda snapshot: snapshot.lstat().st_mtime)[:-_MAX_SNAPSHOTS]:
        other.unlink()
