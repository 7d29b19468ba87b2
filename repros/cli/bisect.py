"""`repros bisect`: since which release a failure is there, and until which."""

from __future__ import annotations

import datetime as dt
import json
import platform
from pathlib import Path
from typing import Any

import click
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.bisect import text as report
from repros.bisect.bisection import BisectionError, bisect, question
from repros.bisect.releases import candidates, read
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.engine.catalogue import Catalogue
from repros.engine.plan import CellSpec, Selection, select
from repros.model import Device, Outcome, Repro
from repros.stacks import stack

MEMORY = Path(".repros/bisect")
"""Answers and logs of bisections, below the working directory."""


def _version(_: click.Context, __: click.Parameter, given: str | None) -> Version | None:
    """Return the version that an option names; refuse what is none."""
    try:
        return None if given is None else Version(given)
    except InvalidVersion as error:
        raise click.BadParameter(f"{given!r} is no version number; expected something like 2.4.0.") from error


@click.command(
    "bisect",
    short_help="Find the releases between which a failure comes and goes.",
    epilog=example("repros bisect RPR-0001 --package lightning --dry-run"),
)
@click.argument("id_", metavar="ID")
@click.option("--package", metavar="NAME", help="Package whose releases to try; the repro's own if it has only one.")
@click.option(
    "--good", callback=_version, metavar="V", help="A release without the failure; only its side is searched."
)
@click.option("--bad", callback=_version, metavar="V", help="A release that has it; that of the stack if not given.")
@click.option("--on", metavar="STACK", help="Stack that everything else comes from; the repro's home if not given.")
@click.option("--variant", default="failing", show_default=True, metavar="NAME", help="Variant to look for.")
@click.option("--strategy", metavar="NAME", help="Strategy; the variant's first if not given.")
@click.option(
    "--device",
    type=click.Choice([device.value for device in Device]),
    help="Device; the first that needs no GPU if not given.",
)
@click.option("--every", is_flag=True, help="Try every release: slow, and what a search must agree with.")
@click.option("--dry-run", is_flag=True, help="Show the steps and what they cost.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; progress goes to stderr.")
@catalogue_option
def bisect_repro(id_: str, places: tuple[Path, ...], **options: Any) -> int:
    """Find out since which release of a package a failure is there, and until which.

    The stack's environment is made once more, and only the package is exchanged in it. Pre-releases, yanked releases
    and those for another Python are left out. A release that cannot be installed, or that fails in another way than
    documented, is unknown: it is stepped round and named. Answers are kept in .repros/bisect, so that an interrupted
    bisection goes on where it was.

    Exit code: 0 when the failure was found, 1 when the release it starts from does not show it, 2 when the request
    cannot be met.
    """
    catalogue = load_catalogue(places)
    repro = catalogue.find(id_)
    spec = _wish(catalogue, repro, options)
    package = _package(repro, options["package"])
    where = stack(options["on"] or repro.home)
    good, bad = options["good"], options["bad"]
    within = (*repro.dependencies, *spec.variant.requires)
    keep = [version for version in (good, bad) if version]
    found = candidates(package, read(package), where.python, within, keep=keep)
    asked = question(spec, where, package, found, good, bad)
    out = console(stderr=options["as_json"])
    for line in report.steps(asked):
        show_text(out, line, "dim")
    if options["dry_run"]:
        return AGREES
    try:
        with interrupt_on_signals():
            finding, probes = bisect(
                asked, MEMORY / f"{repro.id}-{package}", lambda line: show_text(out, line), every=options["every"]
            )
    except KeyboardInterrupt as interruption:
        show_text(out, "interrupted; what is answered already is kept for the next time", "yellow")
        return interruption_exit_code(interruption)
    if options["as_json"]:
        today = str(dt.datetime.now().astimezone().date())
        result = report.record(asked, finding, probes, platform.platform(), today)
        click.echo(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        show_text(out, f"\n{report.paragraph(asked, finding, probes)}")
    return DISAGREES if finding.begins is None else AGREES


def _wish(catalogue: Catalogue, repro: Repro, options: dict[str, Any]) -> CellSpec:
    """Return what to run: one variant under one strategy, on a device that needs no GPU unless one is asked for."""
    devices = (Device(options["device"]),) if options["device"] else ()
    strategies = (options["strategy"],) if options["strategy"] else ()
    specs = select(catalogue, Selection((repro.id,), (options["variant"],), strategies, devices))
    spec = min(specs, key=lambda spec: spec.device is Device.CUDA)
    if spec.variant.outcome is Outcome.PASSES:
        raise BisectionError(f"{repro.id} {spec.variant.name} is a fix; expected a variant that fails.")
    return spec


def _package(repro: Repro, given: str | None) -> str:
    if given:
        return canonicalize_name(given)
    if len(repro.packages) > 1:
        raise BisectionError(f"{repro.id} is in {', '.join(repro.packages)}; name one with --package.")
    return canonicalize_name(repro.packages[0])
