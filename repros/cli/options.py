"""Options that several commands share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from repros.engine import record
from repros.engine.catalogue import CATALOGUE, Catalogue, load
from repros.engine.environment import Where
from repros.engine.plan import HOME
from repros.errors import ReprosError
from repros.model import Device

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")
"""Adds `--json`, for one JSON value in the place of text for people."""

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


def narrowing_options(command: F) -> F:
    """Add `--strategy` and `--device`, which leave part of the cells out."""
    strategies = click.option(
        "--strategy", "strategies", multiple=True, metavar="NAME", help="Only this strategy; repeatable."
    )
    devices = click.option(
        "--device",
        "devices",
        multiple=True,
        type=click.Choice([device.value for device in Device]),
        help="Only this device; repeatable.",
    )
    return strategies(devices(command))


class EmptyCatalogueError(ReprosError):
    """A catalogue without a repro."""

    def __init__(self, places: tuple[Path, ...]) -> None:
        """Compose the sentence."""
        where = ", ".join(map(str, places))
        super().__init__(f"no repro script below {where}; expected files with a [tool.repro] header.")


def load_catalogue(places: tuple[Path, ...]) -> Catalogue:
    """Load the catalogue at these places, or the package's own.

    Raises:
        EmptyCatalogueError: there is no script.
        HeaderError: a script's header is refused.
    """
    places = places or (CATALOGUE,)
    catalogue = load(places)
    if not catalogue.repros:
        raise EmptyCatalogueError(places)
    return catalogue


def where_meant(stacks: tuple[str, ...], python: Path | None, default: tuple[str, ...] = (HOME, "current")) -> Where:
    """Return where to run, from `--stack` and `--python`; the default stacks if neither was given.

    Raises:
        click.UsageError: both were given.
    """
    if python is None:
        return Where(stacks or default)
    if stacks:
        raise click.UsageError("--stack and --python exclude each other: a stack brings its own interpreter.")
    return Where(python=interpreter(python))


def interpreter(given: Path) -> Path:
    """Return the interpreter meant: a path, an environment's folder, or a name on the PATH.

    Raises:
        NoInterpreterError: a folder that is no environment.
    """
    given = given.expanduser()
    if given.is_dir():
        # What venv, uv and conda all have.
        if not (given / "bin" / "python").exists():
            raise NoInterpreterError(given)
        given = given / "bin" / "python"
    elif not given.exists() and (found := shutil.which(given)):
        given = Path(found)
    # Not resolved: an environment's interpreter is a link, and knows its environment by its own path.
    return given.absolute()


class NoInterpreterError(ReprosError):
    """A folder that is no environment."""

    def __init__(self, folder: Path) -> None:
        """Compose the sentence."""
        super().__init__(f"{folder} is a folder without bin/python; name an environment's folder, or an interpreter.")


class NoResultsError(ReprosError):
    """A results file that is not there or holds nothing."""

    def __init__(self, file: Path, problem: str) -> None:
        """Compose the sentence."""
        super().__init__(f"{file} {problem}; expected the results of a 'repros run'.")


def read_results(file: Path) -> list[Mapping[str, Any]]:
    """Read a results file.

    Raises:
        NoResultsError: it is not there, or holds no result.
    """
    try:
        lines = list(record.read(file))
    except OSError as error:
        raise NoResultsError(file, f"cannot be read ({error.strerror})") from error
    if not lines:
        raise NoResultsError(file, "holds no result")
    return [*lines]
