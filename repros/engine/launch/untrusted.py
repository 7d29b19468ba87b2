"""Files that a script may have written: those in the folder of its run, opened as hostile input.

The script may put a link, a FIFO or a device in the place of any of them, or of a folder above them, while the engine
reads. This module follows no link below the folder of the run, opens regular files with one name alone, never waits for
a writer, and reads a bounded number of bytes. The parent of the run's folder is the engine's own.

`tests/engine/launch/test_untrusted.py` refuses any other way to open such files.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MOST_ENTRIES = 20_000
"""Entries that are read of a folder."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}
"""What `O_NOFOLLOW` raises for a link, on Linux and elsewhere; with `O_DIRECTORY` also ENOTDIR."""


class RefusedFileError(OSError):
    """A link, or anything else that is no regular file with one name."""


def open_file(folder: Path, path: Path, *, writable: bool = False) -> BinaryIO:
    """Open a file below the folder of a run.

    Args:
        folder: the folder of the run.
        path: a path below it.
        writable: whether to write to it, too.

    Raises:
        RefusedFileError: it is no regular file with one name, or a folder above it is a link.
        OSError: it cannot be opened.
    """
    with _parent(folder, path) as parent:
        mode = os.O_RDWR if writable else os.O_RDONLY
        opened = io.FileIO(_open(path.name, mode | _FILE, parent), "r+" if writable else "r")
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        opened.close()
        raise RefusedFileError(errno.EINVAL, "no regular file with one name", str(path))
    return io.BufferedRandom(opened) if writable else io.BufferedReader(opened)


def create_file(folder: Path, path: Path) -> BinaryIO:
    """Create a file below the folder of a run and open it for appending.

    Raises:
        OSError: there is one, or it cannot be created.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
    with _parent(folder, path) as parent:
        return os.fdopen(_open(path.name, flags | _FILE, parent), "ab")


def read(folder: Path, path: Path, most: int, begin: int = 0) -> bytes:
    """Return at most `most` bytes of a file below the folder of a run, from byte `begin` on.

    Raises:
        OSError: as :func:`open_file`.
    """
    with open_file(folder, path) as file:
        file.seek(begin)
        return file.read(most)


def read_ends(folder: Path, path: Path, most: int) -> tuple[bytes, bytes, int]:
    """Return the first and the last `most` bytes of a file, and the number of bytes between them.

    Raises:
        OSError: as :func:`open_file`.
    """
    with open_file(folder, path) as file:
        head = file.read(most)
        left_out = max(0, file.seek(0, os.SEEK_END) - len(head) - most)
        file.seek(len(head) + left_out)
        return head, file.read(most), left_out


def size(folder: Path, path: Path) -> int:
    """Return the length of a file in bytes; 0 if it cannot be opened."""
    with contextlib.suppress(OSError), open_file(folder, path) as file:
        return os.fstat(file.fileno()).st_size
    return 0


def is_file(folder: Path, path: Path) -> bool:
    """Return whether a file can be opened."""
    with contextlib.suppress(OSError), open_file(folder, path):
        return True
    return False


def is_folder(folder: Path, path: Path) -> bool:
    """Return whether a path leads to a folder, without a link."""
    with contextlib.suppress(OSError), _parent(folder, path / "entry"):
        return True
    return False


def names(folder: Path, path: Path) -> list[str]:
    """Return the names in a folder below that of a run, sorted; empty if it is a link or no folder."""
    with contextlib.suppress(OSError), _parent(folder, path / "entry") as descriptor, os.scandir(descriptor) as found:
        return sorted(entry.name for entry in itertools.islice(found, _MOST_ENTRIES))
    return []


@contextlib.contextmanager
def _parent(folder: Path, path: Path) -> Iterator[int]:
    """Open the folder that contains a path, without following a link below the folder of the run."""
    descriptor = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in path.relative_to(folder).parts[:-1]:
            below = _open(part, _FOLDER, descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _open(name: str, flags: int, parent: int) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=parent)
    except OSError as error:
        if error.errno in _LINK_ERRORS:
            raise RefusedFileError(error.errno, "a link, or no folder", name) from error
        raise
