"""`repros bisect`: the first and the last release of a package that has a failure."""

from __future__ import annotations

import contextlib
from functools import partial

import click
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.bisect.ask import ask, choose_cell
from repros.bisect.bisection import run_bisection
from repros.bisect.pool import LocalPool, OpenPool
from repros.bisect.question import Question
from repros.bisect.record import bisection_record
from repros.bisect.record import keep as keep_bisection
from repros.bisect.text import describe_outcome, describe_steps
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.on import on_option
from repros.cli.shared.options import catalogue_option, example
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.cli.shared.streams import echo_json
from repros.errors import ReprosError
from repros.model import Device, Repro
from repros.settings import Places


def _parse_version(_: click.Context, __: click.Parameter, given: str | None) -> Version | None:
    try:
        return None if given is None else Version(given)
    except InvalidVersion as error:
        raise click.BadParameter(f"{given!r} is not a version number; expected something like 2.4.0.") from error


@click.command(
    "bisect",
    epilog=example("repros bisect RPR-0001 --package lightning --dry-run"),
)
@click.argument("id_", metavar="ID")
@click.option(
    "--package", metavar="NAME", help="Package whose releases to try; default: the repro's, if it has only one."
)
@click.option(
    "--good", callback=_parse_version, metavar="V", help="Release without the failure; only its side is searched."
)
@click.option("--bad", callback=_parse_version, metavar="V", help="Release with the failure; default: the stack's.")
@click.option("--from", "oldest", callback=_parse_version, metavar="V", help="First release to consider.")
@click.option("--to", "newest", callback=_parse_version, metavar="V", help="Last release to consider.")
@click.option(
    "--stack", "stack_name", metavar="STACK", help="Stack with the other packages; default: the repro's home stack."
)
@click.option("--variant", default="failing", show_default=True, metavar="NAME", help="Variant to run.")
@click.option("--strategy", metavar="NAME", help="Strategy to run; default: the variant's first.")
@click.option(
    "--device",
    type=click.Choice([device.value for device in Device]),
    help="Device to run on; default: the first that needs no GPU.",
)
@click.option(
    "--every",
    is_flag=True,
    help="Try every release: slower, but without the assumption that affected releases are consecutive.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    envvar="REPROS_JOBS",
    metavar="N",
    help="Releases to try side by side; default: one for each core, fewer where memory is short, one on cuda.",
)
@on_option
@click.option("--keep", is_flag=True, help="Keep the result in the evidence of the catalogue.")
@click.option("--dry-run", is_flag=True, help="Show the steps and their cost; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; progress goes to stderr.")
@catalogue_option
def bisect_repro(
    id_: str,
    package: str | None,
    good: Version | None,
    bad: Version | None,
    oldest: Version | None,
    newest: Version | None,
    stack_name: str | None,
    variant: str,
    strategy: str | None,
    device: str | None,
    jobs: int | None,
    on: str | None,
    places: Places,
    *,
    every: bool,
    dry_run: bool,
    as_json: bool,
    keep: bool,
) -> int:
    """Find the first and the last release of a package that has a failure.

    The releases are installed into copies of a stack's environment, several side by side; all other packages keep the
    stack's versions where the release allows it, and what the stack does not have is no newer than the stack or the
    release. Pre-releases, yanked releases and releases for another Python are excluded. A release that cannot be
    installed, or that fails in another way than documented, counts as unknown: it is skipped and listed. If the
    script's imports fail, they are tried once more with the dependencies of the release's own day; both is remembered
    for all repros. Answers are kept in .repros/bisect as they come, so an interrupted bisection can be resumed; --keep
    writes the result into evidence/bisections of the catalogue.

    Exit code: 0 if the failure was found, 1 if the first release to be tried does not show it, 2 if the request is
    invalid.
    """
    catalogue = load_catalogue(places)
    repro = catalogue.find(id_)
    spec = choose_cell(catalogue, repro, variant, strategy, device)
    question = ask(spec, _choose_package(repro, package), stack_name, good, bad, oldest, newest, places)
    for line in describe_steps(question):
        show_text(console(stderr=as_json), line, "dim")
    return AGREES if dry_run else _answer_question(question, jobs, on, every=every, as_json=as_json, keep=keep)


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
            say = partial(show_text, out)
            bisection = run_bisection(question, question.folder, say, every=every, jobs=jobs, open_pool=open_pool)
    except KeyboardInterrupt as interruption:
        show_text(out, "interrupted; the answers so far are kept for the next time", "yellow")
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


def _pool_on(on: str | None) -> contextlib.AbstractContextManager[OpenPool]:
    """Open what probes releases: the nodes of the cluster that `--on` names, or this machine without it.

    Raises:
        ReprosError: Ray is not installed, or no cluster is at the address.
    """
    if on is None:
        return contextlib.nullcontext(LocalPool)
    from repros.cluster import open_releases  # noqa: PLC0415 - only --on needs it

    return open_releases(on)
