"""Where text for people goes."""

from __future__ import annotations

import os

from rich.console import Console
from rich.text import Text

_LOG_WIDTH = 100
"""Columns of a log or a pipe, which does not say how wide it is."""


def console() -> Console:
    """Return the console for stdout: coloured on a terminal unless `NO_COLOR` is set, and as wide as it says."""
    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        return Console(highlight=False, markup=False, emoji=False, width=_LOG_WIDTH)
    return out


def show_text(out: Console, text: Text | str, style: str = "") -> None:
    """Print lines as they are: whoever made them knew the width, and paths must not be broken."""
    out.print(text, style=style or None, soft_wrap=True)
