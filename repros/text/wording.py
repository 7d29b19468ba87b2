"""Wording of counts, ranges and paths; line breaks."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repros.model import Repro, Variant


def relative_to_cwd(path: Path) -> Path:
    """Return the path relative to the working directory if it is inside it, else unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 cell`, `2 cells`, `2 processes`; `plural` is for a noun whose plural ends neither in -s nor in -es."""
    plural = plural or f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{number} {noun if number == 1 else plural}"


def own_requirements(repro: Repro, variant: Variant) -> list[str]:
    """Return the requirements that a variant adds to its repro's."""
    from repros.model.packages import format_requirement  # noqa: PLC0415 - `packaging` delays every command

    return list(map(format_requirement, repro.own_requirements(variant)))


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Break text into lines only between words, which keeps names, versions and links intact.

    Args:
        text: the text.
        width: columns.
        indent: start of every line.
        hanging: start of every line except the first; `indent` by default.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
