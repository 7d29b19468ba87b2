"""Results files as the commands begin and read them."""

from __future__ import annotations

from pathlib import Path

from repros.engine import record
from repros.engine.record import RecordLine
from repros.errors import ReprosError

LATEST = Path(".repros/latest.jsonl")
"""Results of the latest run, below the working directory."""

_OPENING = b'{"schema"'
"""First bytes of every results file."""


def begin_results(file: Path, *, append: bool) -> None:
    """Create a results file, empty unless it is appended to; a file of another kind is left alone.

    Raises:
        ReprosError: it is not a results file, or cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab+") as opened:
            opened.seek(0)
            if opened.read(len(_OPENING)) not in {b"", _OPENING}:
                raise ReprosError(f"{file} is not a results file; name another with --results.")
            if not append:
                opened.truncate(0)
    except FileExistsError as error:
        raise ReprosError(f"{file.parent} is not a folder; name another file with --results.") from error
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror}); name another file with --results."
        raise ReprosError(problem) from error


def read_results(file: Path) -> list[RecordLine]:
    """Read a results file.

    Raises:
        ReprosError: it cannot be read, or holds no result.
    """
    try:
        lines = list(record.read(file))
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror}); expected the results of a 'repros run'."
        raise ReprosError(problem) from error
    if not lines:
        raise ReprosError(f"{file} holds no result; expected the results of a 'repros run'.")
    return lines
