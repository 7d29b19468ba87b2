"""Consoles for the commands' text, and files that must not be overwritten.

All that a command prints goes through the consoles made here or through :mod:`repros.cli.shared.streams`, without what
a terminal would obey; `tests/cli/test_hostile_text.py` checks that there is no other way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from repros.cli.shared.streams import OutputError
from repros.errors import ReprosError
from repros.text.control import remove_controls

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which has no width of its own."""


class _SafeConsole(Console):
    """A console that removes control characters from everything it renders, live displays included."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render without control characters; rich's own, such as those for colours, are added later."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(remove_controls(text), style)

    def on_broken_pipe(self) -> None:
        """Leave it to the command line to end the program; rich would exit with 1."""
        raise BrokenPipeError

    def _write_buffer(self) -> None:
        try:
            super()._write_buffer()
        except BrokenPipeError:
            raise
        except OSError as error:
            del self._buffer[:]  # or the next output would write it again
            raise OutputError(error) from error


def console(*, stderr: bool = False) -> Console:
    """Return the console for stdout or stderr: as wide as the terminal, coloured there unless `NO_COLOR` is set."""
    stream = sys.stderr if stderr else sys.stdout
    columns = os.environ.get("COLUMNS", "")
    measured = stream.isatty() or columns
    width = _LOG_WIDTH if not measured or (columns.isdigit() and int(columns) == 0) else None
    return _SafeConsole(highlight=False, markup=False, emoji=False, width=width, stderr=stderr)


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
