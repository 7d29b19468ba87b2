"""The environments that the values of `--stack` and `--python` name."""

from __future__ import annotations

from pathlib import Path

import click

from repros.cli.shared.inputs import choose_interpreter
from repros.engine.environment import Where
from repros.engine.plan import HOME
from repros.settings import Places
from repros.stacks import load_stacks


def choose_where(
    stacks: tuple[str, ...], python: Path | None, places: Places, default: tuple[str, ...] = (HOME, "current")
) -> Where:
    """Return where to run, from the values of `--stack` and `--python`; on the default stacks if neither is given.

    Raises:
        click.UsageError: both are given.
    """
    if python is None:
        return Where(stacks or default, known=load_stacks(places))
    if stacks:
        raise click.UsageError("--stack and --python exclude each other: a stack brings its own interpreter.")
    return Where(python=choose_interpreter(python))
