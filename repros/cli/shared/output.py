"""Output pages of the commands, and output files.

All output goes through these pages or :mod:`repros.cli.shared.streams`, which remove control characters;
`tests/cli/test_hostile_text.py` checks that. Colours are those of click.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

import click

from repros.cli.shared.streams import echo_styled
from repros.model.errors import ReprosError
from repros.text.control import remove_controls
from repros.text.layout import Section, section_text
from repros.text.styled import Text

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which has no width."""
_UNKNOWN_WIDTH = 80
"""Columns of a terminal of unknown width."""
_WEIGHTS = ("bold", "dim")
PLAIN_TERMINALS = ("dumb", "unknown")
"""Values of `TERM` for terminals without colours and control sequences."""


class Page:
    """Standard output or error: as wide as its terminal, with colours there unless `NO_COLOR` is set."""

    def __init__(self, *, stderr: bool = False) -> None:
        """Use the current stream."""
        self.is_stderr = stderr
        self.stream: TextIO = sys.stderr if stderr else sys.stdout
        self.width = _width(self.stream)
        self.has_colours = _has_colours(self.stream)

    def show(self, text: Section | Text | str = "", style: str = "") -> None:
        """Print lines without wrapping: they fit already, and paths stay whole."""
        if isinstance(text, Section):
            text = section_text(text, self.width)
        whole = text if isinstance(text, Text) else Text(text, style)
        echo_styled(
            paint(whole, style) if self.has_colours else remove_controls(whole.plain),
            err=self.is_stderr,
            color=self.has_colours,
        )


def _width(stream: TextIO) -> int:
    """Return the columns of `COLUMNS`, of the terminal, or of a log."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return int(columns) or _LOG_WIDTH
    if not stream.isatty():
        return _LOG_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN_WIDTH
    except OSError:  # its terminal is gone
        return _UNKNOWN_WIDTH


def _has_colours(stream: TextIO) -> bool:
    """Return whether to print colours: https://no-color.org, https://force-color.org and `TERM` decide."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") not in PLAIN_TERMINALS)


def paint(text: Text, style: str = "") -> str:
    """Return text in a terminal's colours, without its own control characters; the style is that of unstyled parts."""
    shown = []
    for part, own in text.parts:
        words = (own or style).split()
        colour = next((word for word in words if word not in _WEIGHTS), None)
        weights = {word: True for word in words if word in _WEIGHTS}
        shown.append(click.style(remove_controls(part), fg=colour, **weights) if words else remove_controls(part))
    return "".join(shown)


def console(*, stderr: bool = False) -> Page:
    """Return the page for stdout or stderr."""
    return Page(stderr=stderr)


def show_text(out: Page, text: Section | Text | str, style: str = "") -> None:
    """Print lines on a page; the style applies to parts without one."""
    out.show(text, style)


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
