"""Where text for people goes."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.text import Text

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which does not say how wide it is."""


def console() -> Console:
    """Return the console for stdout: coloured on a terminal unless `NO_COLOR` is set, as wide as that is."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _LOG_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def show_text(out: Console, text: Text | str, style: str = "") -> None:
    """Print lines as they are: whoever made them knew the width, and paths must not be broken."""
    out.print(text, style=style or None, soft_wrap=True)
