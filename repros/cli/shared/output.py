"""Output of the commands: consoles for text, and files that must not be overwritten."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from repros.errors import ReprosError

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which has no width of its own."""


def console(*, stderr: bool = False) -> Console:
    """Return the console for stdout or stderr: as wide as the terminal, coloured there unless `NO_COLOR` is set."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _LOG_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width, stderr=stderr)


def show_text(out: Console, text: Text | str, style: str = "") -> None:
    """Print lines without wrapping them again: they fit the width already, and paths must stay whole."""
    out.print(text, style=style or None, soft_wrap=True)


def write_new(file: Path, text: str, *, force: bool = False) -> None:
    """Write a file that must not exist yet.

    Raises:
        ReprosError: it exists and `force` is not given, or it cannot be written.
    """
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        problem = f"{file} exists already; overwrite it with --force, or name another with --output."
        raise ReprosError(problem) from error
    except OSError as error:
        raise ReprosError(f"{file} cannot be written ({error.strerror}); name another with --output.") from error
