"""The option `--on`: the engine on a Ray cluster."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

import click

from repros.engine.local import HERE
from repros.engine.run_options import Engine


def _check_address(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is None or given == "ray" or given.startswith("ray://"):
        return given
    raise click.BadParameter(f"{given!r}; expected 'ray' or 'ray://HOST:PORT'.")


on_option = click.option(
    "--on",
    metavar="ray|ray://HOST:PORT",
    callback=_check_address,
    help="Run on a Ray cluster: 'ray' is the one at RAY_ADDRESS or a local one, 'ray://HOST:PORT' a remote one. "
    'Needs `pip install "repros[ray]"`.',
)
"""Add `--on`, the Ray cluster to run cells on."""


def engine_on(on: str | None) -> AbstractContextManager[Engine]:
    """Open the engine that `--on` names, by default this machine's; `--jobs` limits all nodes together.

    Raises:
        ReprosError: Ray is not installed, or no cluster is at the address.
    """
    if on is None:
        return contextlib.nullcontext(HERE)
    from repros.cluster import open_cluster  # noqa: PLC0415 - only --on needs it

    return open_cluster(on, click.get_current_context().params["jobs"])
