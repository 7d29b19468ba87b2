"""The folder `.repros` next to a user's files: results and logs of runs, hidden from git, with rotation of logs."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from pathlib import Path

from repros.engine.launch.removal import remove_tree

NAME = ".repros"
LOG_FOLDERS = 50
"""Number of runs whose logs are retained; `nox -s repro` makes one run per strategy."""

_MARKER = ".made-by-repros"
"""A file in each log folder; folders without it are never deleted."""
_RUN = re.compile(r"\d{8}-\d{6}-\d{6}")


def make_folder(folder: Path) -> None:
    """Make a folder and its parents; a new `.repros` among them gets a `.gitignore`.

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
    """Make a folder for the logs of a run, and delete those of the oldest runs, if this function has made them.

    Args:
        out: the results file. The logs go into the `.repros` that contains it, or into a new one in its folder.

    Returns:
        The folder. If the disk is full it does not exist, and each cell reports that.
    """
    runs = (_own_folder(out) or out.parent / NAME) / "runs"
    new = runs / datetime.now().astimezone().strftime("%Y%m%d-%H%M%S-%f")
    with contextlib.suppress(OSError):
        make_folder(new)
        (new / _MARKER).touch()
        # Exclude the new folder: after a clock change its name may sort first.
        earlier = sorted((folder for folder in runs.iterdir() if _is_of_a_run(folder) and folder != new), reverse=True)
        for folder in earlier[LOG_FOLDERS - 1 :]:
            remove_tree(folder)
    return new


def _own_folder(file: Path) -> Path | None:
    """Return the nearest parent folder `.repros` of a file."""
    return next((folder for folder in file.parents if folder.name == NAME), None)


def _is_of_a_run(folder: Path) -> bool:
    """Return whether a folder was made by :func:`new_log_folder`."""
    return bool(_RUN.fullmatch(folder.name)) and not folder.is_symlink() and (folder / _MARKER).is_file()
