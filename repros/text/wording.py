"""Small things as people read them."""

from __future__ import annotations

import textwrap
from pathlib import Path


def relative_to_cwd(path: Path) -> Path:
    """Return the path from the working directory if it lies below, else as it is."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def count(number: int, noun: str) -> str:
    """Return `1 cell`, `2 cells`, `2 processes`."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Break text into lines between its words only, so that names, versions and links stay whole.

    Args:
        text: what to break.
        width: columns.
        indent: what every line begins with.
        hanging: what the lines from the second on begin with, if not the same.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
