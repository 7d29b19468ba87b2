"""`repros report`: a block to paste into an upstream issue."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from repros import environments
from repros.cli.live import LiveReporter
from repros.cli.options import (
    LATEST,
    catalogue_option,
    example,
    load_catalogue,
    narrowing_options,
    read_results,
    where_meant,
)
from repros.cli.output import console, show_text
from repros.cli.signals import interrupting
from repros.engine.catalogue import Catalogue
from repros.engine.environment import Where
from repros.engine.pipeline import run_selection
from repros.engine.plan import Selection
from repros.errors import ReprosError
from repros.issue import markdown
from repros.issue.build import Statement, shows_failure, state
from repros.issue.redact import Identity
from repros.issue.torch_env import collect
from repros.model import Device, Outcome, Repro
from repros.stacks import load_stacks
from repros.text import table

RUNS = Path(".repros/report.jsonl")
"""Results of what `repros report` ran itself; the latest run's stay as they are."""


class NothingToReportError(ReprosError):
    """No result of what is to be reported."""


@click.command(
    short_help="Write a Markdown block for an upstream issue.",
    epilog=example("repros report RPR-0005 --python ~/project/.venv", "repros report > block.md"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Run the failing variant and its fixes on this interpreter or environment first.",
)
@click.option("--stack", "stacks", multiple=True, metavar="NAME", help="The same on a stack; repeatable.")
@narrowing_options
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Report what this file holds, and run nothing.  [default: {LATEST}]",
)
@click.option(
    "--form",
    type=click.Choice([form.value for form in markdown.Form]),
    help="Whose bug form the headings follow; the project's that the failure is in, if not given.",
)
@click.option("--json", "as_json", is_flag=True, help="For machines: the same facts, redacted too.")
@catalogue_option
def report(ids: tuple[str, ...], places: tuple[Path, ...], **options: Any) -> None:
    """Write a Markdown block for an upstream issue, one for each ID.

    With --python or --stack the failing variant and its fixes are run there. Else the results of the latest run are
    reported; without an ID, all of them that show a failure. Progress goes to stderr. What identifies you or your
    machine, and secrets, are taken out; read it all the same before you post it.
    """
    catalogue = load_catalogue(places)
    python, stacks, file = options["python"], options["stacks"], options["results"]
    if python is None and not stacks:
        if options["strategies"] or options["devices"]:
            raise click.UsageError("--strategy and --device choose what to run; say where, with --python or --stack.")
        file = file or LATEST
        lines = read_results(file)
    elif file is not None:
        raise click.UsageError("--results reports what was run; it goes with neither --python nor --stack.")
    elif not ids:
        raise click.UsageError("say which repros to run there: an ID, or several.")
    else:
        devices = tuple(Device(name) for name in options["devices"])
        lines, file = _run(catalogue, ids, where_meant(stacks, python), options["strategies"], devices), RUNS
    statements = list(_statements(catalogue, ids, lines, file))
    if options["as_json"]:
        click.echo(json.dumps([dataclasses.asdict(statement) for statement in statements], indent=2))
        return
    form = markdown.Form(options["form"]) if options["form"] else None
    click.echo("\n---\n\n".join(markdown.markdown(statement, form) for statement in statements), nl=False)


def _run(
    catalogue: Catalogue, ids: tuple[str, ...], where: Where, strategies: tuple[str, ...], devices: tuple[Device, ...]
) -> list[Mapping[str, Any]]:
    """Run what a report tells of: the failure, what helps, and what is said to help and does not."""
    repros = [catalogue.find(name) for name in ids]
    wanted = dict.fromkeys(variant.name for repro in repros for variant in repro.variants if _tells(variant))
    observer = LiveReporter(console(stderr=True), RUNS, append=False, verbose=False)
    with observer, interrupting():
        for result in run_selection(
            catalogue, Selection(ids, tuple(wanted), strategies, devices), where, RUNS, observer
        ):
            observer.finished(result)
    observer.close(interrupted=False, summary=False)
    return list(observer.lines)


def _tells(variant: Any) -> bool:
    return variant.name == "failing" or variant.outcome is Outcome.PASSES or variant.claim is not None


def _statements(
    catalogue: Catalogue, ids: tuple[str, ...], lines: list[Mapping[str, Any]], file: Path
) -> Iterator[Statement]:
    latest = table.latest(lines)
    for repro in _meant(catalogue, ids, latest, file):
        own = [line for line in latest if line["repro"] == repro.id]
        if not own:
            problem = (
                f"{file} has no result of {repro.id}; run it where it fails: repros report {repro.id} --python PATH"
            )
            raise NothingToReportError(problem)
        yield state(repro, own, _collected, Identity.of_this_machine())


def _meant(catalogue: Catalogue, ids: tuple[str, ...], lines: list[Mapping[str, Any]], file: Path) -> list[Repro]:
    """Return the repros that are named, or else all that show a failure in the results."""
    if ids:
        return list(dict.fromkeys(catalogue.find(name) for name in ids))
    failed = {line["repro"] for line in lines if shows_failure(line)}
    if not failed:
        raise NothingToReportError(f"{file} shows no failure; name an ID to report what ran clean.")
    known = [repro for repro in catalogue if repro.id in failed]
    if unknown := failed - {repro.id for repro in known}:
        show_text(console(stderr=True), f"not in this catalogue, left out: {', '.join(sorted(unknown))}", "yellow")
    return known


def _collected(line: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return torch's description of a line's environment, unless that is gone or is another one by now."""
    name, torch = line["stack"]["name"], line["stack"]["versions"].get("torch")
    stack = load_stacks().get(name)
    python = environments.place(stack) / "bin" / "python" if stack else Path(name)
    if not python.exists():
        return "", "the environment is not here any more"
    collected, why_not = _collect(python)
    if collected and torch and torch not in collected.partition("\n")[0]:
        return "", f"the environment holds another torch than it did ({torch}) when the repro was run"
    return collected, why_not


@functools.cache
def _collect(python: Path) -> tuple[str, str | None]:
    return collect(python)
