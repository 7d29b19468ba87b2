"""Results files as runs begin and hold them, and as they are read."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import BinaryIO

from repros.engine import record
from repros.engine.own_folder import make_folder
from repros.engine.record import RecordLine
from repros.model.errors import ReprosError

LATEST = Path(".repros/latest.jsonl")
"""Results of the latest run, below the working directory."""

_OPENING = b'{"schema"'
"""First bytes of every results file."""


def begin_results(file: Path, *, append: bool, option: str = "--results") -> BinaryIO:
    """Create a results file, empty unless it is appended to; a file of another kind is left alone.

    The returned file holds the results while it is open: another run may append to them, but not empty them.

    Args:
        file: the results file.
        append: whether results are added to those in it.
        option: the option that names another file, for the sentences.

    Raises:
        ReprosError: it is not a results file, cannot be written, or would be emptied while another run writes to it.
    """
    try:
        make_folder(file.parent)
        opened = file.open("ab+")
        opened.seek(0)
        if opened.read(len(_OPENING)) not in {b"", _OPENING}:
            opened.close()
            raise ReprosError(f"{file} is not a results file; name another with {option}.")
        if not append:
            if not _lock(opened, fcntl.F_WRLCK):
                opened.close()
                raise ReprosError(f"another run is writing to {file}; add --append, or name another with {option}.")
            opened.truncate(0)
        _lock(opened, fcntl.F_RDLCK)
    except FileExistsError as error:
        raise ReprosError(f"{file.parent} is not a folder; name another file with {option}.") from error
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror}); name another file with {option}."
        raise ReprosError(problem) from error
    return opened


def _lock(file: BinaryIO, kind: int) -> bool:
    """Take or change a lock on a whole file; return False if another open file has one that excludes it.

    It belongs to the open file (`fcntl(2)`, F_OFD_SETLK): it ends with the process however that ends, and it does not
    affect the short locks with which lines are appended. File systems without locks give none.
    """
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        return error.errno not in {errno.EAGAIN, errno.EACCES}
    return True


def read_results(file: Path, *, allow_empty: bool = False) -> list[RecordLine]:
    """Read a results file.

    Raises:
        ReprosError: it cannot be read, or holds no result and may not be empty.
    """
    try:
        lines = record.read_last(file)
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror}); expected the results of a 'repros run'."
        raise ReprosError(problem) from error
    if not lines and not allow_empty:
        raise ReprosError(f"{file} holds no result; expected the results of a 'repros run'.")
    return lines
