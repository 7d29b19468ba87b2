"""`repros audit`: the documented failures that affect pinned or installed packages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import click

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import AuditStatus
from repros.advise.audit.formats import FormatName, choose_format
from repros.advise.audit.ignore import Ignore, find_pyproject, index_ignores, read_ignores
from repros.advise.audit.report import AuditReport, build_report
from repros.advise.audit.sources import find_source, read_source
from repros.advise.audit.sources.environment import environment_subject
from repros.advise.audit.subject import Subject
from repros.cli.shared.example import example
from repros.cli.shared.inputs import choose_interpreter, load_catalogue
from repros.cli.shared.options import catalogue_option, name_foreign_settings
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo
from repros.engine import evidence
from repros.model import FailureKind
from repros.model.catalogue import Catalogue
from repros.model.settings import CatalogueLocations, foreign_settings

CLEAN, AFFECTED = 0, 1


@click.command(
    epilog=example(
        "repros audit requirements.txt",
        "repros audit --python ~/project/.venv",
        "repros audit uv.lock --ignore RPR-0005 2027-01-31 'the teacher is frozen'",
    ),
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help="Audit this interpreter's environment.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([name.value for name in FormatName]),
    default=FormatName.TEXT.value,
    show_default=True,
    help="Output format; sarif is for code hosts.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--ignore",
    "ignores",
    type=(str, click.DateTime(["%Y-%m-%d"]), str),
    multiple=True,
    metavar="ID UNTIL REASON",
    help="Ignore a failure until a day (inclusive, such as 2027-01-31) for a reason; repeatable.",
)
@click.option(
    "--bugs-only", is_flag=True, help="Exclude failures that are by design, misuse or a documented limitation."
)
@click.option("--strict", is_flag=True, help="Also exit with 1 for possible and unknown failures.")
@click.option("--verbose", "-v", is_flag=True, help="Print reasons, workarounds and evidence, and unaffected failures.")
@catalogue_option
def audit(
    file: Path | None,
    python: Path | None,
    format_name: str,
    ignores: tuple[tuple[str, dt.datetime, str], ...],
    places: CatalogueLocations,
    *,
    as_json: bool,
    bugs_only: bool,
    strict: bool,
    verbose: bool,
) -> int:
    """Find the documented failures that affect pinned or installed packages.

    FILE is a requirements.txt, pyproject.toml, uv.lock or pylock.toml; the default is the one in the working directory.
    For a version range, a failure of some releases in it is possible. A failure that cannot be determined is unknown,
    never unaffected. The exit code is 1 if a package is affected.

    To accept a failure temporarily, add its id, a reason and a last day to `ignore` in [tool.repros.audit] of the
    project's pyproject.toml.
    """
    if python is not None and file is not None:
        raise click.UsageError("FILE and --python exclude each other: audit one after the other.")
    catalogue = load_catalogue(places)
    subject = read_subject(file, python)
    ignored = _read_ignores(catalogue, file, ignores)
    today = dt.datetime.now().astimezone().date()
    asked = [repro for repro in catalogue if repro.kind is FailureKind.BUG or not bugs_only]
    report = build_report(subject, assess(asked, subject, evidence.read(locations=places)), ignored, today)
    out = console()
    chosen = FormatName.JSON if as_json and format_name == FormatName.TEXT else FormatName(format_name)
    shown = choose_format(chosen, width=out.width, verbose=verbose)(report)
    if isinstance(shown, str):
        echo(shown)
    else:
        show_text(out, shown)
    return _exit_code(report, strict=strict)


def read_subject(file: Path | None, python: Path | None) -> Subject:
    """Return the packages of a file, or of an interpreter's environment; without both, of the project's file.

    Raises:
        ReprosError: they cannot be read.
    """
    if python is not None:
        from repros.engine.probe import probe  # noqa: PLC0415 - files need no engine

        executable = choose_interpreter(python)
        return environment_subject(probe(executable, sim=False, needs_torch=False))
    return read_source(file if file is not None else find_source(Path()))


def _read_ignores(
    catalogue: Catalogue, file: Path | None, given: tuple[tuple[str, dt.datetime, str], ...]
) -> Mapping[str, Ignore]:
    """Return the project's ignores, replaced by those of the command line where both have one."""
    folder = file.parent if file is not None else Path()
    if foreign_settings(folder) != foreign_settings():  # that one is named already
        name_foreign_settings(folder)
    pyproject = find_pyproject(folder)
    of_project = index_ignores(read_ignores(pyproject), catalogue) if pyproject else {}
    of_command = index_ignores((Ignore(id_, reason, until.date()) for id_, until, reason in given), catalogue)
    return of_project | of_command


def _exit_code(report: AuditReport, *, strict: bool) -> int:
    counted = {AuditStatus.AFFECTED, *({AuditStatus.POSSIBLE, AuditStatus.UNKNOWN} if strict else ())}
    return AFFECTED if report.with_status(*counted) else CLEAN
