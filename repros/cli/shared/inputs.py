"""Lookup of what the values of options name: a catalogue, an interpreter, environments to run on."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from repros.engine.catalogue import CATALOGUE, Catalogue, load
from repros.engine.environment import Where
from repros.engine.plan import HOME
from repros.errors import ReprosError

CHECKOUT = Path("repros/catalogue")
"""The catalogue in a checkout of the project, below the working directory."""


def load_catalogue(paths: tuple[Path, ...]) -> Catalogue:
    """Load the scripts at these paths, or the package's own catalogue if there is no path.

    Raises:
        ReprosError: there is no script.
        HeaderError: a script's header is refused.
    """
    paths = paths or (CATALOGUE,)
    catalogue = load(paths)
    if not catalogue.repros:
        below = ", ".join(map(str, paths))
        raise ReprosError(f"no repro script below {below}; expected files with a [tool.repro] header.")
    return catalogue


def choose_where(stacks: tuple[str, ...], python: Path | None, default: tuple[str, ...] = (HOME, "current")) -> Where:
    """Return where to run, from the values of `--stack` and `--python`; on the default stacks if neither is given.

    Raises:
        click.UsageError: both are given.
    """
    if python is None:
        return Where(stacks or default)
    if stacks:
        raise click.UsageError("--stack and --python exclude each other: a stack brings its own interpreter.")
    return Where(python=find_interpreter(python))


def find_interpreter(given: Path) -> Path:
    """Return the interpreter at a path, in an environment's folder, or of that name on the PATH.

    Raises:
        ReprosError: a folder that is not an environment.
    """
    given = given.expanduser()
    if given.is_dir():
        # venv, uv and conda all have this path.
        if not (given / "bin" / "python").exists():
            problem = f"{given} is a folder without bin/python; name an environment's folder, or an interpreter."
            raise ReprosError(problem)
        given = given / "bin" / "python"
    elif not given.exists() and (found := shutil.which(given)):
        given = Path(found)
    # Not resolved: an environment's interpreter is a link, and finds its environment by its own path.
    return given.absolute()
