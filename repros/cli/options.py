"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from repros.errors import ReprosError
from repros.shelf import CATALOGUE, Shelf, load

F = TypeVar("F", bound=Callable[..., Any])

CHECKOUT = Path("repros/catalogue")
"""The catalogue in a checkout of the project, below the working directory."""

LATEST = Path(".repros/latest.jsonl")
"""Results of the latest run, below the working directory."""


def example(*lines: str) -> str:
    """Return the end of a command's help: how it is called, kept in its lines by click's mark for that."""
    return "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])


def catalogue_option(command: F) -> F:
    """Add `--catalogue`, which replaces the catalogue that comes with the package."""
    option = click.option(
        "--catalogue",
        "places",
        type=click.Path(exists=True, path_type=Path),
        multiple=True,
        metavar="PATH",
        help="Script or folder of scripts to use in the place of the package's own catalogue; repeatable.",
    )
    return option(command)


class EmptyCatalogueError(ReprosError):
    """A catalogue without a repro."""

    def __init__(self, places: tuple[Path, ...]) -> None:
        """Compose the sentence."""
        where = ", ".join(map(str, places))
        super().__init__(f"no repro script below {where}; expected files with a [tool.repro] header.")


def load_shelf(places: tuple[Path, ...]) -> Shelf:
    """Load the catalogue at these places, or the package's own.

    Raises:
        EmptyCatalogueError: there is no script.
        HeaderError: a script's header is refused.
    """
    places = places or (CATALOGUE,)
    shelf = load(places)
    if not shelf.repros:
        raise EmptyCatalogueError(places)
    return shelf
