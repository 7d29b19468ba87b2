"""Where text for people goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from repros.errors import ReprosError

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which does not say how wide it is."""


def console(*, stderr: bool = False) -> Console:
    """Return the console for stdout or stderr: coloured on a terminal unless `NO_COLOR` is set, as wide as that is."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _LOG_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width, stderr=stderr)


def show_text(out: Console, text: Text | str, style: str = "") -> None:
    """Print lines as they are: whoever made them knew the width, and paths must not be broken."""
    out.print(text, style=style or None, soft_wrap=True)


class OutputError(ReprosError):
    """A file that cannot be written."""


def write_new(file: Path, text: str, *, force: bool = False) -> None:
    """Write a file that is not there yet.

    Raises:
        OutputError: it is there already and `force` is not given, or it cannot be written.
    """
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        problem = f"{file} is there already; overwrite it with --force, or name another with --output."
        raise OutputError(problem) from error
    except OSError as error:
        raise OutputError(f"{file} cannot be written ({error.strerror}); name another with --output.") from error
