"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from repros.cli.shared.output import console, show_text
from repros.model.kinds import Device
from repros.model.settings import CatalogueLocations, find_catalogues, foreign_settings

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
"""Add `--json`, for one JSON value instead of text."""

weak_sandbox_option = click.option(
    "--weak-sandbox",
    is_flag=True,
    envvar="REPROS_WEAK_SANDBOX",
    help="Run even if this system cannot build the whole sandbox; `repros doctor` tells.",
)
"""Add `--weak-sandbox`."""


def _find_places(context: click.Context, _: click.Parameter, given: tuple[Path, ...]) -> CatalogueLocations:
    if not context.resilient_parsing:  # not for completions
        name_foreign_settings()
    # A relative path names another folder once the working directory has changed.
    return find_catalogues([path.absolute() for path in given])


def name_foreign_settings(folder: Path | None = None) -> None:
    """Report on stderr which settings around a folder are ignored; the default is the working directory."""
    if (file := foreign_settings(folder)) is not None:
        problem = (
            f"ignored: [tool.repros] of {file}, which belongs to another user; to use its catalogue, pass --catalogue"
        )
        show_text(console(stderr=True), problem, "yellow")


catalogue_option = click.option(
    "--catalogue",
    "places",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="PATH",
    callback=_find_places,
    is_eager=True,  # other options' completion needs it
    help="Use this script or folder of scripts instead of the package's catalogue and those of REPROS_CATALOGUE and "
    "pyproject.toml; repeatable.",
)
"""Add `--catalogue`, which replaces all other catalogues; the command gets the catalogues in use."""


def stacks_option(about: str) -> Callable[[F], F]:
    """Return the decorator that adds the repeatable `--stack`."""
    return click.option("--stack", "stacks", multiple=True, metavar="NAME", help=about)


def python_option(about: str) -> Callable[[F], F]:
    """Return the decorator that adds `--python`, an interpreter or the folder of an environment."""
    return click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help=about)


program_option = python_option("Environment whose programs run.")
"""Add `--python` to a command that runs the user's program with the environment's folder first on PATH."""


def to_devices(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[Device, ...]:
    """Return the devices of these names; a callback for options that take several."""
    return tuple(map(Device, names))


def narrowing_options(command: F) -> F:
    """Add `--strategy` and `--device`, which restrict the cells."""
    strategies = click.option(
        "--strategy", "strategies", multiple=True, metavar="NAME", help="Only this strategy; repeatable."
    )
    devices = click.option(
        "--device",
        "devices",
        multiple=True,
        type=click.Choice([device.value for device in Device]),
        callback=to_devices,
        help="Only this device; repeatable.",
    )
    return strategies(devices(command))


def side_by_side_options(variable: str | None = None) -> Callable[[F], F]:
    """Return the decorator that adds `--jobs` and `--share-gpus`.

    Args:
        variable: environment variable with the value of `--jobs`.
    """
    more = f" Environment variable: {variable}." if variable else ""
    jobs = click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run at most N cells in parallel, plus known hangs, which use no CPU; 1 = sequential. Default: as many as "
        f"keep the cores busy, from the CPU time of earlier runs.{more}",
        envvar=variable,
    )
    share = click.option(
        "--share-gpus", is_flag=True, help="Run several cells on one GPU; by default each has its own."
    )

    def add(command: F) -> F:
        return jobs(share(command))

    return add
