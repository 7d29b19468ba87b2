"""Snapshots: what was read from many files, kept in one file of the cache folder until one of them changes."""

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
"""Ends the name of every snapshot: the folder may hold files of somebody else, which stay."""
_MOST_KEPT = 32
"""Snapshots of one name that are kept, the newest; the others' files may be gone, as those of another checkout."""


def remember(
    name: str,
    files: Iterable[str | Path],
    read: Callable[[], T],
    key: str = "",
    holds: Callable[[T], bool] = lambda _: True,
) -> T:
    """Return what `read` returns, from its snapshot if no file has changed since that was written.

    A file has changed if its size, its inode or one of its times has. Files that came or went count, too. A snapshot
    that is damaged, or of another user, counts as none. Where none can be written, `read` is called each time.

    Args:
        name: what is kept, in one word.
        files: everything that the value depends on: the files that are read, and the code that reads them.
        key: what else the value depends on.
        read: its value can be pickled; what it raises is raised, and not kept.
        holds: whether a value may be kept and, later, whether the kept one still holds.
    """
    state = (sys.version, key, sorted(map(_state, files)))
    paths = "\0".join(path for path, *_ in state[2])
    try:
        file = _folder() / f"{name}-{zlib.crc32(paths.encode('utf-8', 'surrogateescape')):08x}{_ENDING}"
    except (ReprosError, RuntimeError, OSError):  # no folder for a cache, which whoever needs one reports
        return read()
    with suppress(Exception):  # whatever reading a damaged pickle raises
        kept: T = _load(file, state)
        if holds(kept):
            return kept
    value = read()
    if holds(value):
        with suppress(OSError):
            _save(file, state, value)
    return value


def files_below(folder: Path, ending: str) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders whose names have an ending; a file itself."""
    if not folder.is_dir():
        yield folder
        return
    for place, folders, names in os.walk(folder):
        folders[:] = [folder for folder in folders if folder != "__pycache__"]
        yield from (Path(place, name) for name in names if name.endswith(ending))


def _folder() -> Path:
    """Return the folder of the snapshots; mostly without platformdirs, whose import takes longer than to read one."""
    is_usual = sys.platform == "linux" and not os.environ.get(VARIABLE) and not os.environ.get("XDG_CACHE_HOME")
    return (Path("~/.cache/repros").expanduser() if is_usual else cache_folder()) / "snapshots"


def _state(file: str | Path) -> tuple[str, ...]:
    try:
        found = os.stat(file)  # noqa: PTH116 - one of hundreds
    except OSError as error:
        return str(file), str(error.errno)
    numbers = (found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    return str(file), *map(str, numbers)


def _load(file: Path, state: Any) -> Any:
    """Return the value of a snapshot of this state; raise anything if there is none."""
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_uid != os.geteuid():
            raise ValueError
        # A folder of the user's own, like the compiled accelerator beside it, which runs, too.
        known, checksum = pickle.load(opened)  # noqa: S301
        data = opened.read()
    if known != state or zlib.crc32(data) != checksum:
        raise ValueError
    return pickle.loads(data)  # noqa: S301 - the same


def _save(file: Path, state: Any, value: Any) -> None:
    """Write a snapshot in one step, and remove the oldest if there are many.

    Raises:
        OSError: there is no room for it; nothing of it is left.
    """
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(pickle.dumps((state, zlib.crc32(data)), pickle.HIGHEST_PROTOCOL) + data)
        temporary.replace(file)
    except BaseException:  # an interrupt, too
        temporary.unlink(missing_ok=True)
        raise
    # With what killed processes left unfinished, whose names go on after the ending.
    own = file.parent.glob(f"{file.name.partition('-')[0]}-*{_ENDING}*")
    for other in sorted(own, key=lambda snapshot: snapshot.lstat().st_mtime)[:-_MOST_KEPT]:
        other.unlink()
