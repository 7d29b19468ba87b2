"""`repros bisect`: the first and the last affected release, or the release at which a program's outcome changes."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.cli.shared.bisect_script import bisect_script
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue, read_catalogue
from repros.cli.shared.on import on_option
from repros.cli.shared.options import catalogue_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import ASKED, issue_options, running_options, watch_option
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.cli.shared.streams import echo_json
from repros.model import Device, Repro
from repros.model.errors import ReprosError, UnknownNameError
from repros.model.settings import CatalogueLocations
from repros.scripts.bisect.bisection import run_bisection
from repros.scripts.bisect.pool import LocalPool, OpenPool
from repros.scripts.bisect.question import Question, ask, choose_cell
from repros.scripts.bisect.record import bisection_record
from repros.scripts.bisect.record import keep as keep_bisection
from repros.scripts.bisect.text import describe_outcome, describe_steps
from repros.scripts.try_.request import ScriptRequest


def _parse_version(_: click.Context, __: click.Parameter, given: str | None) -> Version | None:
    try:
        return None if given is None else Version(given)
    except InvalidVersion as error:
        raise click.BadParameter(f"{given!r} is not a version number; expected something like 2.4.0.") from error


_OF_FAILURES = ("variant", "strategy", "device", "on", "keep")
_OF_SCRIPTS = ("tolerance", "runs", "index")
_AFTER = "repros.scripts.bisect.after"
"""In click's context: the words after `--`, or None without it."""


class _Bisect(click.Command):
    """A command that distinguishes words before and after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the words at the first `--`."""
        place = args.index("--") if "--" in args else None
        ctx.meta[_AFTER] = None if place is None else args[place + 1 :]
        return super().parse_args(ctx, args[:place])


@click.command(
    "bisect",
    cls=_Bisect,
    epilog=example(
        "repros bisect RPR-0001 --package lightning --dry-run",
        "repros bisect train.py --package peft --from 0.13.0",
        "repros bisect --package lightning --bad nan --ranks 2 -- python train.py",
    ),
)
@click.argument("id_", metavar="[ID|SCRIPT] [-- ARGS or COMMAND]...", required=False)
@click.option("--package", metavar="NAME", help="Package to bisect. Default: the repro's, if it has only one.")
@click.option(
    "--good",
    metavar="V|TEXT",
    help="Release without the failure; only its side is searched. For a program: text or number that it prints.",
)
@click.option(
    "--bad",
    metavar="V|TEXT",
    help="Release with the failure. Default: the stack's. For a program: text or number that it prints.",
)
@click.option("--tolerance", type=click.FloatRange(0), metavar="X", help="Tolerance for a number in --good or --bad.")
@click.option("--from", "oldest", callback=_parse_version, metavar="V", help="First release to consider.")
@click.option("--to", "newest", callback=_parse_version, metavar="V", help="Last release to consider.")
@click.option(
    "--stack",
    "stack_name",
    metavar="STACK",
    help="Stack with the other packages. Default: the repro's `home`; for a program, `current`.",
)
@click.option("--variant", default="failing", show_default=True, metavar="NAME", help="Variant to run.")
@click.option("--strategy", metavar="NAME", help="Strategy to run. Default: the variant's first.")
@click.option(
    "--device",
    type=click.Choice([device.value for device in Device]),
    help="Device to run on. Default: the first that needs no GPU.",
)
@click.option(
    "--every", is_flag=True, help="Test every release, without assuming that affected releases are consecutive."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    envvar="REPROS_JOBS",
    metavar="N",
    help="Releases to test in parallel. Default: one per core, fewer if memory is short, one on cuda.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 9),
    default=2,
    show_default=True,
    metavar="N",
    help="Runs of a program that must agree on a release, out of at most 2N-1.",
)
@click.option("--index", metavar="URL", help="Also test the nightly releases of this index, with a program.")
@issue_options
@running_options
@watch_option
@on_option
@click.option("--keep", is_flag=True, help="Record the result in the catalogue's evidence.")
@click.option("--dry-run", is_flag=True, help="Print the steps and their cost without running them.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; progress goes to stderr.")
@catalogue_option
@click.pass_context
def bisect_repro(
    context: click.Context, /, id_: str | None, request: ScriptRequest, places: CatalogueLocations, **given: Any
) -> int:
    """Find the first and the last affected release of a package, or the release that changes a program's outcome.

    Releases are installed into copies of a stack's environment and tested in parallel. Other packages keep the stack's
    versions unless the tested release forbids it. Pre-releases, yanked releases and releases for another Python are
    excluded. A release that cannot be installed, or fails differently, is unknown: it is skipped and listed. If the
    script's imports fail, they are tried again with the dependencies of the day of the release. Results are cached in
    .repros/bisect, so an interrupted bisection resumes; --keep writes the result into evidence/bisections of the
    catalogue.

    With SCRIPT, --from-issue FILE, or COMMAND after --, the search is for the release at which the program's outcome
    changes: its exception, a hang, a clean exit, or which of --good and --bad it prints. It runs in a sandbox, like
    `repros try`.
    The two ends of the range run first: --from and --to, else the oldest and the newest release. A release whose
    outcome is that of neither end is unknown, and is listed.

    Exit code: 0 if the failure or the change was found; 1 if the first tested release does not fail, or both ends have
    the same outcome; 2 if the request is invalid.
    """
    after = context.meta[_AFTER]
    if id_ is None and after is None and request.issue is None:
        raise click.UsageError("Missing argument 'ID', SCRIPT, --from-issue FILE or -- COMMAND.")
    if id_ is None or _is_script(id_, places):
        _refuse(context, _OF_FAILURES, "is for a failure of the catalogue")
        asked = {name: value for name, value in given.items() if name not in _OF_FAILURES}
        return bisect_script(request, id_, after, places, **asked)
    _refuse(context, (*ASKED, *_OF_SCRIPTS), f"is for a script or a command, and {id_} is a failure of the catalogue")
    if after is not None:
        raise click.UsageError(f"{id_} takes no words after --; expected a script, or only a command.")
    return _bisect_failure(id_, places, **{name: value for name, value in given.items() if name not in _OF_SCRIPTS})


def _is_script(name: str, places: CatalogueLocations) -> bool:
    """Return whether a name is that of a script's file, and not of a failure."""
    if name.endswith(".py") or "/" in name:
        return True
    if not Path(name).is_file():
        return False
    try:
        read_catalogue(places).find(name)
    except UnknownNameError:
        return True
    return False


def _refuse(context: click.Context, names: tuple[str, ...], why: str) -> None:
    """Refuse options on the command line that have no effect here."""
    options = {option.name: option.opts[0] for option in context.command.params}
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{options[name]} {why}.")


def _bisect_failure(
    id_: str,
    places: CatalogueLocations,
    *,
    package: str | None,
    good: str | None,
    bad: str | None,
    oldest: Version | None,
    newest: Version | None,
    stack_name: str | None,
    variant: str,
    strategy: str | None,
    device: str | None,
    jobs: int | None,
    on: str | None,
    every: bool,
    dry_run: bool,
    as_json: bool,
    keep: bool,
) -> int:
    known_good, known_bad = (_to_version(name, given) for name, given in (("good", good), ("bad", bad)))
    catalogue = load_catalogue(places)
    repro = catalogue.find(id_)
    spec = choose_cell(catalogue, repro, variant, strategy, device)
    package = _choose_package(repro, package)
    question = ask(spec, package, stack_name, known_good, known_bad, oldest, newest, places)
    for line in describe_steps(question):
        show_text(console(stderr=as_json), line, "dim")
    return AGREES if dry_run else _answer_question(question, jobs, on, every=every, as_json=as_json, keep=keep)


def _to_version(name: str, given: str | None) -> Version | None:
    """Return the release that `--good` or `--bad` names for a failure.

    Raises:
        click.BadParameter: it is no version number.
    """
    context = click.get_current_context()
    option = next(param for param in context.command.params if param.name == name)
    try:
        return _parse_version(context, option, given)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, context, option) from error


def _choose_package(repro: Repro, given: str | None) -> str:
    if given:
        return canonicalize_name(given)
    if len(repro.packages) > 1:
        raise ReprosError(f"{repro.id} is in {', '.join(repro.packages)}; name one with --package.")
    return canonicalize_name(repro.packages[0])


def _answer_question(
    question: Question, jobs: int | None, on: str | None, *, every: bool, as_json: bool, keep: bool
) -> int:
    out = console(stderr=as_json)
    try:
        with interrupt_on_signals(), _pool_on(on) as open_pool:
            report_progress = partial(show_text, out)
            bisection = run_bisection(
                question, question.folder, report_progress, every=every, jobs=jobs, open_pool=open_pool
            )
    except KeyboardInterrupt as interruption:
        show_text(out, "interrupted; the results so far are cached", "yellow")
        return interruption_exit_code(interruption)
    if as_json:
        echo_json(bisection_record(bisection), indent=1)
    else:
        show_text(out, f"\n{describe_outcome(bisection)}")
    if bisection.boundaries.begins is None:
        return DISAGREES
    if keep:
        show_text(out, f"kept: {keep_bisection(bisection)}", "dim")
    return AGREES


def _pool_on(on: str | None) -> contextlib.AbstractContextManager[OpenPool[Question]]:
    """Open the pool that tests releases: on the cluster that `--on` names, by default on this machine.

    Raises:
        ReprosError: Ray is not installed, or no cluster is at the address.
    """
    if on is None:
        return contextlib.nullcontext(LocalPool)
    from repros.cluster import open_releases  # noqa: PLC0415 - only --on needs it

    return open_releases(on)
