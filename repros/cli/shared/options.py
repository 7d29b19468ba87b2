"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from repros.cli.shared.output import console, show_text
from repros.model import Device
from repros.model.settings import CatalogueLocations, find_catalogues, foreign_settings

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
"""Add `--json`, for one JSON value instead of text."""


def _find_places(context: click.Context, _: click.Parameter, given: tuple[Path, ...]) -> CatalogueLocations:
    if not context.resilient_parsing:  # not for completions
        name_foreign_settings()
    # A relative path names another folder once the working directory has changed.
    return find_catalogues([path.absolute() for path in given])


def name_foreign_settings(folder: Path | None = None) -> None:
    """Say on stderr which settings are left out around a folder, by default the working directory."""
    if (file := foreign_settings(folder)) is not None:
        problem = f"left out: [tool.repros] of {file}, which belongs to another user; --catalogue names its catalogue"
        show_text(console(stderr=True), problem, "yellow")


catalogue_option = click.option(
    "--catalogue",
    "places",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="PATH",
    callback=_find_places,
    is_eager=True,  # other options' completion needs it
    help="Script or folder of scripts to use instead of the package's own catalogue and those that REPROS_CATALOGUE "
    "or pyproject.toml names; repeatable.",
)
"""Add `--catalogue`, which takes the place of all other catalogues; the command gets the catalogues in use."""

program_option = click.option(
    "--python", type=click.Path(path_type=Path), metavar="PATH", help="Environment whose programs are run."
)
"""Add `--python` to a command that runs a program of the user's, whose PATH begins with the environment's folder."""


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
    """Return what adds `--jobs` and `--share-gpus`, by which cells share a machine.

    Args:
        variable: the environment variable that gives `--jobs`, too.
    """
    more = f" Also {variable} in the environment." if variable else ""
    jobs = click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run at most N cells at a time, and beside them those that are documented to hang; with 1, one after "
        f"another in their order. If not given, as many as keep the cores busy, by earlier runs.{more}",
        envvar=variable,
    )
    share = click.option(
        "--share-gpus", is_flag=True, help="Let cells run at the same time on one GPU; otherwise each has its own."
    )

    def add(command: F) -> F:
        return jobs(share(command))

    return add


def example(*lines: str) -> str:
    r"""Return the example at the end of a command's help; click's mark `\b` keeps its line breaks."""
    return "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
