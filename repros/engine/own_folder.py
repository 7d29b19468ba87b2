"""The folder `.repros` beside a user's files: what runs write, which no git lists, and which runs delete again."""

from __future__ import annotations

import contextlib
import re
import shutil
from datetime import datetime
from pathlib import Path

NAME = ".repros"
LOG_FOLDERS = 50
"""Number of runs whose logs are kept; `nox -s repro` makes one run per strategy."""

_MARK = ".made-by-repros"
"""A file in each folder of logs: a folder without it is somebody else's, whatever its name."""
_RUN = re.compile(r"\d{8}-\d{6}-\d{6}")


def make_folder(folder: Path) -> None:
    """Make a folder and its parents; a `.repros` among them that is new hides itself from git.

    Raises:
        OSError: it cannot be made.
    """
    own = _own_folder(folder / "file")
    is_new = own is not None and not own.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None and is_new:
        with contextlib.suppress(OSError):
            (own / ".gitignore").write_text("*\n", encoding="utf-8")


def new_log_folder(out: Path) -> Path:
    """Make a folder for a run's logs, and delete those of the oldest runs: nothing that this function has not made.

    Args:
        out: the results file. The logs go below the `.repros` that it is in, or below a new one beside it.

    Returns:
        The folder. Where the disk is full it does not exist, which each cell then reports.
    """
    runs = (_own_folder(out) or out.parent / NAME) / "runs"
    new = runs / datetime.now().astimezone().strftime("%Y%m%d-%H%M%S-%f")
    with contextlib.suppress(OSError):
        make_folder(new)
        (new / _MARK).touch()
        # The new one apart: a clock that was set back gives it the oldest name.
        earlier = sorted((folder for folder in runs.iterdir() if _is_of_a_run(folder) and folder != new), reverse=True)
        for folder in earlier[LOG_FOLDERS - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)
    return new


def _own_folder(file: Path) -> Path | None:
    """Return the nearest `.repros` that a file is in."""
    return next((folder for folder in file.parents if folder.name == NAME), None)


def _is_of_a_run(folder: Path) -> bool:
    """Return whether :func:`new_log_folder` has made a folder."""
    return bool(_RUN.fullmatch(folder.name)) and not folder.is_symlink() and (folder / _MARK).is_file()
