"""`repros stacks`: the sets of library versions to run on."""

from __future__ import annotations

import datetime as dt

import click
from click.core import ParameterSource

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.engine import environments, evidence
from repros.engine.environments.disk import clean, measure_disk
from repros.engine.environments.newest import describe_newest, lock_newest, plan_newest
from repros.engine.environments.outdated import DAYS_TO_FOLLOW, Lag, find_lags
from repros.engine.environments.resolve import write_lock
from repros.engine.matrix.changes import describe_changes
from repros.engine.stacks import load_stacks, stack
from repros.engine.stacks.write import check_new_name, folder_for_new
from repros.model.errors import ReprosError
from repros.model.settings import PACKAGE, UNUSED_DAYS, CatalogueLocations, find_checkout, read_settings
from repros.model.stack import Size, Stack
from repros.text import json_values
from repros.text.disk import disk_lines, part_values, removed_lines
from repros.text.styled import Text
from repros.text.wording import count, relative_to_cwd, wrap


@click.group(
    invoke_without_command=True,
    epilog=example("repros stacks", "repros stacks new 2026-11", "repros stacks compare 2026-07 current"),
)
@click.option(
    "--lock",
    "locked",
    multiple=True,
    metavar="NAME",
    help="Resolve this private stack again and write its lock; repeatable.",
)
@click.option(
    "--outdated",
    is_flag=True,
    help="List the packages of `current` that are behind the newest release; exit code 1 if for more than "
    f"{DAYS_TO_FOLLOW} days.",
)
@click.option(
    "--disk",
    is_flag=True,
    help="Print the disk space of the environments, accelerators, snapshots, and of uv's wheels for them.",
)
@click.option(
    "--clean",
    "to_clean",
    is_flag=True,
    help="Remove the environments and accelerators that were not used for 30 days, or the number of days in "
    f"{UNUSED_DAYS} of [tool.repros], with their wheels in uv's cache, and what killed processes left.",
)
@json_option
@catalogue_option
@click.pass_context
def stacks(
    context: click.Context,
    locked: tuple[str, ...],
    places: CatalogueLocations,
    *,
    outdated: bool,
    disk: bool,
    to_clean: bool,
    as_json: bool,
) -> int | None:
    """List the stacks: sets of library versions with their packages, sizes and state.

    A private catalogue may have its own stacks: `stacks/NAME.toml` with about, python, requirements and until, the last
    day whose releases count. --lock writes the lock next to it.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context, context.invoked_subcommand)
        return None  # the subcommand's exit code counts
    for name in locked:
        echo(write_lock(stack(name, places)))
    if outdated:
        return _show_outdated(places, as_json=as_json)
    if to_clean:
        _clean(as_json=as_json)
    if disk:
        _show_disk(places, as_json=as_json)
    if not (locked or disk or to_clean):
        _show_stacks(places, as_json=as_json)
    return AGREES


def _refuse_options(context: click.Context, subcommand: str) -> None:
    """Refuse options before a subcommand, where they have no effect."""
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            fix = "write it after the subcommand" if option.name == "places" else "remove it"
            raise click.UsageError(f"{option.opts[0]} before '{subcommand}' has no effect; {fix}.")


@stacks.command(short_help="Lock the newest releases as a stack.", epilog=example("repros stacks new 2026-11"))
@click.argument("name")
@catalogue_option
def new(name: str, places: CatalogueLocations) -> int:
    """Lock the newest releases as the stack NAME, and list the changes.

    It has the newest releases of torch, lightning, accelerate, transformers, peft, bitsandbytes and the other packages
    pinned by the newest stack. Exclusions next to a pin, such as "torch==2.15.0,<2.16", are kept. Releases of today do
    not count, so that the lock is reproducible.

    stacks/NAME.toml and its lock are written into the first private catalogue, or into the checkout. Exit code: 0 if
    the stack was written, 1 if the newest stack is up to date, 2 if it cannot be resolved.
    """
    known = load_stacks(places)
    folder = folder_for_new(places)
    if folder == folder_for_new(PACKAGE) and find_checkout() is None:
        raise ReprosError("the installed package takes no new stacks; name a private catalogue with --catalogue.")
    check_new_name(name, folder, tuple(known))
    base, until = [*known.values()][-1], dt.datetime.now(dt.UTC).date() - dt.timedelta(1)
    wanted = plan_newest(name, base, folder, until)
    if wanted is None:
        echo(f"{base.name} has the newest releases of {until}; nothing is written")
        return DISAGREES
    file = lock_newest(wanted, base)
    for line in describe_newest(wanted, base):
        echo(line)
    echo(f"written: {relative_to_cwd(file)} and its lock", err=True)
    return AGREES


@stacks.command(
    short_help="List what changed between two stacks.", epilog=example("repros stacks compare 2026-07 current")
)
@click.argument("old")
@click.argument("new")
@catalogue_option
def compare(old: str, new: str, places: CatalogueLocations) -> int:
    """Print in Markdown the differences of the evidence on the stacks OLD and NEW, one sentence per change.

    A sentence names the packages that decide the header's range, or else all imported packages with another release.
    `repros matrix --stack NAME` measures missing cells. Exit code: 0, or 2 if one of the stacks is not measured.
    """
    found, catalogue = evidence.read(None, places), load_catalogue(places)
    for name in (old, new):
        if stack(name, places).name not in {unit.stack for unit in found}:
            raise ReprosError(f"nothing is measured on {name}; run: repros matrix --stack {name}")
    for line in describe_changes(catalogue, found, old, new):
        echo(line)
    return AGREES


def _show_stacks(places: CatalogueLocations, *, as_json: bool) -> None:
    known = load_stacks(places).values()
    if as_json:
        folders = [
            environments.environment_folder(known_stack) if environments.ready(known_stack) else None
            for known_stack in known
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


def _clean(*, as_json: bool) -> None:
    """Remove what was not used for the number of days in the settings, and print each part that is removed."""
    days = read_settings().unused_days
    removed = clean(days, dt.datetime.now().astimezone().date())
    if as_json:
        echo_json([part_values(part) for part in removed])
        return
    for line in removed_lines(removed, days):
        echo(line)


def _show_disk(places: CatalogueLocations, *, as_json: bool) -> None:
    usage = measure_disk(pin for known in load_stacks(places).values() for pin in known.pins.values())
    if as_json:
        echo_json({"total": usage.total, "parts": [part_values(part) for part in usage.parts]})
        return
    for line in disk_lines(usage, read_settings().unused_days, dt.datetime.now().astimezone().date()):
        echo(line)


def _show_outdated(places: CatalogueLocations, *, as_json: bool) -> int:
    """Print the packages of `current` that are behind the newest release, and return the exit code."""
    today = dt.datetime.now(dt.UTC).date()
    documented = {name for repro in load_catalogue(places) for name in repro.packages}
    lags = list(find_lags(stack("current", places), documented))
    out = console()
    if as_json:
        echo_json([_lag_values(lag, today) for lag in lags])
    elif not lags:
        show_text(out, "all packages of current are up to date", "green")
    else:
        for lag in lags:
            for line in wrap(_lag_line(lag, today), out.width, hanging="  "):
                show_text(out, line, "red" if lag.is_overdue(today) else "")
    return DISAGREES if any(lag.is_overdue(today) for lag in lags) else AGREES


def _lag_values(lag: Lag, today: dt.date) -> dict[str, str | bool]:
    """Return a lag as `repros stacks --outdated --json` prints it."""
    return {
        **json_values.attributes(lag, "package", "pinned"),
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
    state = f"ready in {environments.environment_folder(stack)}" if ready else f"not created yet: {_cost(stack)}"
    versions = ", ".join(str(requirement).replace("==", " ") for requirement in stack.requirements)
    body = {stack.about: "", f"python {stack.python}, {versions}": "", state: "green" if ready else "dim"}
    lines = [Text(stack.name, "bold")]
    for part, style in body.items():
        lines += [Text(line, style) for line in wrap(part, width, "  ")]
    return lines


def _cost(stack: Stack) -> str:
    """Return the size of the environment with torch's CUDA build and with its CPU build."""
    if stack.cuda is None:
        return "size not measured"
    cpu = f"; with torch's CPU build {_format_size(stack.cpu)}" if stack.cpu else ""
    return f"{_format_size(stack.cuda)}{cpu}"


def _format_size(size: Size) -> str:
    return f"{size.download / 1e9:.1f} GB to download, {size.unpacked / 1e9:.1f} GB on disk"
