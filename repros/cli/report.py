"""`repros report`: a Markdown block to paste into an upstream issue."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from packaging.requirements import Requirement

from repros.advise.report.build import IssueReport, build, shows_failure
from repros.advise.report.collect_env import collect_env
from repros.advise.report.markdown import Form, markdown, short_markdown
from repros.advise.report.redact import MachineIdentity, redact_machine
from repros.advise.report.script.markdown import script_markdown
from repros.cli.shared.example import example
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.options import catalogue_option, narrowing_options, python_option, stacks_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import (
    choose_targets,
    issue_options,
    running_options,
    try_on,
)
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.streams import echo, echo_json
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.cli.shared.where import choose_where, with_option
from repros.engine import environments, record
from repros.engine.environment import Targets
from repros.engine.pipeline import run_specs
from repros.engine.plan import Selection, select
from repros.engine.record import LATEST, RecordLine, read_results
from repros.engine.stacks import load_stacks
from repros.model import Device, FailureKind, Repro, Role, Stack, Variant
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.try_.markdown import comment
from repros.scripts.try_.report import report_of
from repros.scripts.try_.request import ScriptRequest, read_task
from repros.text.layout import HANGING
from repros.text.threads import kind_text
from repros.text.wording import wrap

_NO_ENV = ("", None)
"""No description of an environment, for no reason but that it was not asked for."""
RUNS = Path(".repros/report.jsonl")
"""Results of the cells that `repros report` ran; those of `repros run` are not overwritten."""


@click.command(
    epilog=example(
        "repros report RPR-0005 --python ~/project/.venv",
        "repros report > block.md",
        "repros report --script train.reduced.py --stack 2024-09 --stack current > block.md",
    ),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@python_option("First run the failing variant and its fixes on this interpreter or environment.")
@stacks_option("First run them on this stack; repeatable.")
@narrowing_options
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Report the results in this file; run nothing.  [default: {LATEST}]",
)
@click.option(
    "--form",
    "chosen",
    type=click.Choice([form.value for form in Form]),
    help="Bug form that sets the headings. Default: that of the project with the failure.",
)
@click.option("--json", "as_json", is_flag=True, help="Print redacted JSON instead of Markdown.")
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report this script instead of a repro, run like `repros try` on --stack or current.",
)
@issue_options
@with_option
@click.option("--short", is_flag=True, help="Print a comment for a thread instead of a bug form.")
@click.option("--env", "with_env", is_flag=True, help="Add the output of `torch.utils.collect_env`.")
@running_options
@catalogue_option
def report(
    ids: tuple[str, ...],
    python: Path | None,
    stacks: tuple[str, ...],
    strategies: tuple[str, ...],
    devices: tuple[Device, ...],
    results: Path | None,
    chosen: str | None,
    script: Path | None,
    wanted: tuple[Requirement, ...],
    request: ScriptRequest,
    places: CatalogueLocations,
    *,
    short: bool,
    with_env: bool,
    as_json: bool,
) -> None:
    """Write a Markdown block for an upstream issue, one per ID.

    With --python or --stack, the failing variant and its fixes run there first. Otherwise the results of the latest run
    are reported; without an ID, all failures in them. Progress goes to stderr. Secrets and data that identify you or
    your machine are redacted; read the block before you post it.

    --script FILE, or --from-issue FILE, reports any script, run as by `repros try`. The options from --ranks on, and
    --with, apply only then.
    """
    form = _Presentation(Form(chosen) if chosen else None, short, with_env, as_json)
    if script is not None or request.issue is not None:
        if ids or python is not None or results is not None or strategies or devices:
            raise click.UsageError("--script reports a file of its own, on --stack; it excludes IDs and their options.")
        _report_script(_name_script(request, script), stacks, wanted, places, form)
        return
    if wanted:
        raise click.UsageError("--with applies to --script and --from-issue.")
    catalogue = load_catalogue(places)
    lines, file = _find_lines(
        catalogue, ids, choose_where(stacks, python, places) if python or stacks else None, strategies, devices, results
    )
    reports = list(_reports(catalogue, ids, lines, file, with_env=with_env))
    _name_threads(catalogue.find(report.failure.id) for report in reports)
    _print(reports, form)


@dataclass(frozen=True)
class _Presentation:
    """How a report is printed."""

    form: Form | None
    short: bool
    with_env: bool
    as_json: bool


def _find_lines(
    catalogue: Catalogue,
    ids: tuple[str, ...],
    where: Targets | None,
    strategies: tuple[str, ...],
    devices: tuple[Device, ...],
    results: Path | None,
) -> tuple[Sequence[RecordLine], Path]:
    """Return the results to report with their file: those of a run if there is a target, or those of an earlier run."""
    if where is None:
        if strategies or devices:
            raise click.UsageError("--strategy and --device restrict a run; add --python or --stack to run.")
        file = results or LATEST
        return read_results(file), file
    if results is not None:
        raise click.UsageError("--results reports an earlier run; it excludes --python and --stack.")
    if not ids:
        raise click.UsageError("name the repros to run there: one ID, or several.")
    return _run(catalogue, ids, where, strategies, devices), RUNS


def _print(reports: Sequence[IssueReport], form: _Presentation) -> None:
    if form.as_json:
        echo_json([dataclasses.asdict(report) for report in reports])
        return
    texts = (short_markdown(report) if form.short else markdown(report, form.form) for report in reports)
    echo("\n---\n\n".join(texts), nl=False)


def _name_script(request: ScriptRequest, script: Path | None) -> ScriptRequest:
    """Return the request with the file of `--script`."""
    if script is None:
        return request
    if request.issue is not None:
        raise click.UsageError("--script and --from-issue exclude each other.")
    return dataclasses.replace(request, words=(str(script),))


def _report_script(
    request: ScriptRequest,
    stacks: tuple[str, ...],
    wanted: tuple[Requirement, ...],
    places: CatalogueLocations,
    form: _Presentation,
) -> None:
    """Run a script on stacks and print its block.

    Raises:
        ReprosError: it ran nowhere.
    """
    task = read_task(dataclasses.replace(request, watch=False))
    accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    runs = try_on(task, functools.partial(choose_targets, task, stacks, wanted, places))
    identity = MachineIdentity.of_this_machine()
    pythons = {run.stack: run.environment.python for run in runs}
    found = report_of(task, runs, lambda name: _collect_env_once(pythons[name]) if form.with_env else _NO_ENV, identity)
    if not found.runs:
        raise ReprosError(f"the script ran nowhere: {'; '.join(run.outcome.note or '' for run in runs)}.")
    if form.as_json:
        echo_json(dataclasses.asdict(found))
    elif form.short:
        command = shlex.join(["repros", "try", *(["--from-issue", "issue.md"] if task.issue else [task.script.name])])
        echo(redact_machine(comment(task, runs, command)))
    else:
        echo(script_markdown(found, form.form), nl=False)


def _name_threads(repros: Iterable[Repro]) -> None:
    """Report on stderr what is known upstream, to avoid duplicate reports and reports of intended behaviour."""
    out = console(stderr=True)
    for repro in repros:
        # One in the packages' own trackers is read by those who can change something.
        reports = sorted(repro.upstream.reports, key=lambda link: not any(name in link for name in repro.packages))
        others = f" (the block has {len(reports) - 1} more)" if len(reports) > 1 else ""
        facts = [
            "" if repro.kind is FailureKind.BUG else kind_text(repro.kind, repro.documented),
            f"fixed by {repro.upstream.fixed_by[0]}" if repro.upstream.fixed_by else "",
            f"known as {reports[0]}{others}: comment there" if reports else "",
        ]
        if any(facts):
            for line in wrap(f"{repro.id}: {'; '.join(filter(None, facts))}", out.width, hanging=HANGING):
                show_text(out, line, "yellow")


def _run(
    catalogue: Catalogue, ids: tuple[str, ...], where: Targets, strategies: tuple[str, ...], devices: tuple[Device, ...]
) -> Sequence[RecordLine]:
    """Run the variants that a report needs: the failure, its fixes, and the documented fixes that do not work."""
    repros = [catalogue.find(name) for name in ids]
    variants = dict.fromkeys(variant.name for repro in repros for variant in repro.variants if _is_reported(variant))
    selection = Selection(ids, tuple(variants), strategies, devices)
    observer = LiveReporter(console(stderr=True), RUNS, append=False, verbose=False)
    with observer, interrupt_on_signals():
        for result in run_specs(select(catalogue, selection), where, RUNS, observer):
            observer.finished(result)
    observer.close(interrupted=False, summary=False)
    return observer.lines


def _is_reported(variant: Variant) -> bool:
    return variant.name == "failing" or variant.role in {Role.WORKS, Role.DOES_NOT_FIX}


def _reports(
    catalogue: Catalogue, ids: tuple[str, ...], lines: Sequence[RecordLine], file: Path, *, with_env: bool
) -> Iterator[IssueReport]:
    latest = record.latest(lines)
    for repro in _choose_repros(catalogue, ids, latest, file):
        own = [line for line in latest if line["repro"] == repro.id]
        if not own:
            raise ReprosError(
                f"{file} has no result of {repro.id}; run it where it fails: repros report {repro.id} --python PATH"
            )
        known = functools.partial(_torch_env, load_stacks(catalogue.locations))
        yield build(
            repro, own, known if with_env else lambda _: _NO_ENV, MachineIdentity.of_this_machine(), catalogue.locations
        )


def _choose_repros(catalogue: Catalogue, ids: tuple[str, ...], lines: Sequence[RecordLine], file: Path) -> list[Repro]:
    """Return the named repros, or else all that show a failure in the results."""
    if ids:
        return list(dict.fromkeys(catalogue.find(name) for name in ids))
    failed = {line["repro"] for line in lines if shows_failure(line)}
    if not failed:
        raise ReprosError(f"{file} shows no failure; name an ID to report a clean run.")
    known = [repro for repro in catalogue if repro.id in failed]
    if unknown := failed - {repro.id for repro in known}:
        show_text(console(stderr=True), f"not in this catalogue, ignored: {', '.join(sorted(unknown))}", "yellow")
    return known


def _torch_env(stacks: Mapping[str, Stack], line: RecordLine) -> tuple[str, str | None]:
    """Return torch's description of a line's environment, or why there is none: it may be gone or changed."""
    name, torch = line["stack"]["name"], line["stack"]["versions"].get("torch")
    stack = stacks.get(name)
    python = environments.environment_folder(stack) / "bin" / "python" if stack else Path(name)
    if not python.exists():
        return "", "the environment does not exist any more"
    output, problem = _collect_env_once(python)
    if output and torch and torch not in output.partition("\n")[0]:
        return "", f"the environment has another torch now than in the run ({torch})"
    return output, problem


@functools.cache
def _collect_env_once(python: Path) -> tuple[str, str | None]:
    return collect_env(python)
