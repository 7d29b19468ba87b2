"""`repros stacks`: the sets of library versions to run on."""

from __future__ import annotations

import datetime as dt

import click

from repros import environments
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.environments.outdated import DAYS_TO_FOLLOW, Lag, find_lags
from repros.environments.resolve import write_lock
from repros.model.stack import Size, Stack
from repros.settings import Places
from repros.stacks import load_stacks, stack
from repros.text import json_values
from repros.text.styled import Text
from repros.text.wording import count, wrap


@click.command(epilog=example("repros stacks"))
@click.option(
    "--lock",
    "locked",
    multiple=True,
    metavar="NAME",
    help="Resolve this stack anew and write its lock; for a stack of your own. Repeatable.",
)
@click.option(
    "--outdated",
    is_flag=True,
    help="List instead the packages of which 'current' lacks the newest release; exit code 1 if it has been behind for "
    f"more than {DAYS_TO_FOLLOW} days.",
)
@json_option
@catalogue_option
def stacks(locked: tuple[str, ...], places: Places, *, outdated: bool, as_json: bool) -> int:
    """List the sets of library versions to run on: their packages, their sizes, and which are ready.

    A private catalogue may have stacks of its own: `stacks/NAME.toml` in it with about, python, requirements and until,
    the last day whose releases count, and beside it the lock that --lock writes.
    """
    for name in locked:
        echo(write_lock(stack(name, places)))
    if outdated:
        return _show_outdated(places, as_json=as_json)
    if not locked:
        _show_stacks(places, as_json=as_json)
    return AGREES


def _show_stacks(places: Places, *, as_json: bool) -> None:
    known = load_stacks(places).values()
    if as_json:
        folders = [
            environments.place(known_stack) if environments.ready(known_stack) else None for known_stack in known
        ]
        values = [
            json_values.stack_details(known_stack, folder) for known_stack, folder in zip(known, folders, strict=True)
        ]
        echo_json(values)
        return
    out = console()
    for known_stack in known:
        for line in _stack_lines(known_stack, out.width):
            show_text(out, line)


def _show_outdated(places: Places, *, as_json: bool) -> int:
    """Show for which packages `current` is not the newest, and return the exit code."""
    today = dt.datetime.now(dt.UTC).date()
    documented = {name for repro in load_catalogue(places) for name in repro.packages}
    lags = list(find_lags(stack("current", places), documented))
    out = console()
    if as_json:
        echo_json([_lag_values(lag, today) for lag in lags])
    elif not lags:
        show_text(out, "no package of current has a newer release", "green")
    else:
        for lag in lags:
            for line in wrap(_lag_line(lag, today), out.width, hanging="  "):
                show_text(out, line, "red" if lag.is_overdue(today) else "")
    return DISAGREES if any(lag.is_overdue(today) for lag in lags) else AGREES


def _lag_values(lag: Lag, today: dt.date) -> dict[str, str | bool]:
    """Return a lag as `repros stacks --outdated --json` prints it."""
    return {
        "package": lag.package,
        "pinned": str(lag.pinned),
        "behind": str(lag.first.version),
        "since": lag.first.date.isoformat(),
        "newest": str(lag.newest),
        "overdue": lag.is_overdue(today),
    }


def _lag_line(lag: Lag, today: dt.date) -> str:
    behind = f"{count(lag.days(today), 'day')} behind {lag.first.version} of {lag.first.date}"
    return f"{lag.package} {lag.pinned} in current is {behind}; the newest is {lag.newest}"


def _stack_lines(stack: Stack, width: int) -> list[Text]:
    ready = environments.ready(stack)
    state = f"ready in {environments.place(stack)}" if ready else f"not made yet: {_cost(stack)}"
    versions = ", ".join(str(requirement).replace("==", " ") for requirement in stack.requirements)
    body = {stack.about: "", f"python {stack.python}, {versions}": "", state: "green" if ready else "dim"}
    lines = [Text(stack.name, "bold")]
    for part, style in body.items():
        lines += [Text(line, style) for line in wrap(part, width, "  ")]
    return lines


def _cost(stack: Stack) -> str:
    """Return the size of the environment with torch's CUDA build and with its CPU build."""
    if stack.cuda is None:
        return "its size is not measured"
    cpu = f"; with UV_TORCH_BACKEND=cpu {_format_size(stack.cpu)}" if stack.cpu else ""
    return f"{_format_size(stack.cuda)}{cpu}"


def _format_size(size: Size) -> str:
    return f"{size.download / 1e9:.1f} GB to download, {size.unpacked / 1e9:.1f} GB on disk"
