"""`repros audit`: the documented failures that affect pinned or installed packages."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from repros.advise.audit.assess import assess
from repros.advise.audit.formats import FormatName, choose_format
from repros.advise.audit.ignore import Ignore, find_pyproject, index_ignores, read_ignores
from repros.advise.audit.reach import read_code
from repros.advise.audit.report import FailOn, Policy, build_report
from repros.advise.audit.sources import DEFAULT_FILES, find_source, read_piped, read_source
from repros.advise.audit.subject import Subject
from repros.cli.shared.example import example
from repros.cli.shared.inputs import choose_interpreter, load_catalogue
from repros.cli.shared.options import catalogue_option, name_foreign_settings
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo
from repros.engine import evidence
from repros.model.catalogue import Catalogue
from repros.model.settings import CatalogueLocations, foreign_settings

CLEAN, AFFECTED = 0, 1
_STDIN = Path("-")


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
    "--fail-on",
    type=click.Choice([extent.value for extent in FailOn]),
    default=FailOn.FIXABLE.value,
    show_default=True,
    help="The failures that are reported: those that a newer release does not have; all bugs, too; or all.",
)
@click.option("--strict", is_flag=True, help="Report possible and unknown failures, too.")
@click.option(
    "--base",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Report only failures that this older file, or the one in this folder, does not have.",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Leave out the failures of packages that the code in this folder, and what it imports, cannot use.",
)
@click.option("--all", "show_all", is_flag=True, help="List the failures that are only counted otherwise.")
@click.option("--verbose", "-v", is_flag=True, help="Print reasons, workarounds and evidence.")
@catalogue_option
def audit(
    file: Path | None,
    python: Path | None,
    format_name: str,
    ignores: tuple[tuple[str, dt.datetime, str], ...],
    places: CatalogueLocations,
    *,
    as_json: bool,
    fail_on: str,
    strict: bool,
    base: Path | None,
    source: Path | None,
    show_all: bool,
    verbose: bool,
) -> int:
    """Find the documented failures of pinned or installed packages, and the upgrades that end them.

    FILE is a requirements.txt, a pyproject.toml, a lock (uv, Poetry, PDM, pylock.toml), the output of pip list, conda
    list or conda env export, an issue with its environment, or - for standard input; the default is the one in the
    working directory.
    The report has the failures that a newer release does not have, and the number of the others. Exit code: 1 if a
    failure is reported, 0 if none is, 2 if the input cannot be read. A failure is `possible` if it affects a part of a
    version range, and `unknown` if the file does not say enough; neither counts as unaffected.

    To accept a failure temporarily, add its id, a reason and a last day to `ignore` in [tool.repros.audit] of the
    project's pyproject.toml.
    """
    if python is not None and file is not None:
        raise click.UsageError("FILE and --python exclude each other: audit one after the other.")
    catalogue = load_catalogue(places)
    subject = read_subject(file, python, catalogue)
    ignored = _read_ignores(catalogue, file, ignores)
    today = dt.datetime.now().astimezone().date()
    measured = evidence.read(locations=places)
    before = _read_base(base, catalogue) if base is not None else None
    report = build_report(
        subject,
        assess(catalogue, subject, measured),
        ignored,
        today,
        Policy(FailOn(fail_on), strict),
        base=(before.name, [*assess(catalogue, before, measured)]) if before else None,
        code=read_code(source) if source else None,
    )
    out = console()
    chosen = FormatName.JSON if as_json and format_name == FormatName.TEXT else FormatName(format_name)
    shown = choose_format(chosen, width=out.width, verbose=verbose, show_all=show_all)(report)
    if isinstance(shown, str):
        echo(shown)
    else:
        show_text(out, shown)
    return AFFECTED if report.reported else CLEAN


def read_subject(file: Path | None, python: Path | None, catalogue: Catalogue) -> Subject:
    """Return the packages of a file, or of an interpreter's environment; without both, of the project's file.

    Raises:
        ReprosError: they cannot be read.
    """
    if python is not None:
        from repros.advise.audit.sources.environment import environment_subject  # noqa: PLC0415 - reads metadata
        from repros.engine.probe import probe  # noqa: PLC0415 - files need no engine

        executable = choose_interpreter(python)
        packages = {name for repro in catalogue for name in repro.named_packages}
        return environment_subject(probe(executable, sim=False, needs_torch=False), packages)
    find_releases = partial(_find_releases, catalogue)
    if file == _STDIN:
        return read_piped(sys.stdin.buffer.read(), find_releases)
    return read_source(file if file is not None else find_source(Path()), find_releases)


def _read_base(path: Path, catalogue: Catalogue) -> Subject:
    if path.is_dir() and not any((path / name).is_file() for name in DEFAULT_FILES):
        return Subject(str(path), {}, complete=True)  # a project without dependencies yet
    return read_source(find_source(path) if path.is_dir() else path, partial(_find_releases, catalogue))


def _find_releases(catalogue: Catalogue, text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the releases that a text states; of an issue, those of its environment before those of its prose."""
    from repros.diagnose.issue import read_issue  # noqa: PLC0415 - most files are requirements
    from repros.diagnose.match.versions import find_versions  # noqa: PLC0415 - the same

    packages = {name for repro in catalogue for name in repro.named_packages} | {"python"}
    trusted = {name: versions[:1] for name, versions in read_issue(text).versions.items()}
    return {**find_versions(enumerate(text.split("\n"), 1), packages), **trusted}


def _read_ignores(
    catalogue: Catalogue, file: Path | None, given: tuple[tuple[str, dt.datetime, str], ...]
) -> Mapping[str, Ignore]:
    """Return the project's ignores, replaced by those of the command line where both have one."""
    folder = file.parent if file is not None else Path()  # for `-`, too
    if foreign_settings(folder) != foreign_settings():  # that one is named already
        name_foreign_settings(folder)
    pyproject = find_pyproject(folder)
    of_project = index_ignores(read_ignores(pyproject), catalogue) if pyproject else {}
    if any(not reason.strip() for _, _, reason in given):
        raise click.UsageError(
            "--ignore has an empty reason; expected ID UNTIL REASON, such as 'the teacher is frozen'."
        )
    of_command = index_ignores((Ignore(id_, reason, until.date()) for id_, until, reason in given), catalogue)
    return of_project | of_command
