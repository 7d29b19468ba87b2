"""`repros audit`: which documented failures concern what is installed or pinned."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import click

from repros import evidence
from repros.audit import sources
from repros.audit.assess import Status, assess
from repros.audit.formats import plain_json, sarif, text
from repros.audit.ignore import Ignore, from_pyproject, nearest_pyproject, settled
from repros.audit.subject import Subject
from repros.audit.verdict import Audit, decide
from repros.cli.shared.inputs import find_interpreter, load_catalogue
from repros.cli.shared.options import catalogue_option, example
from repros.cli.shared.output import console, show_text
from repros.engine.catalogue import Catalogue
from repros.engine.probe import probe

CLEAN, AFFECTED = 0, 1


@click.command(
    short_help="Say which failures concern what is installed or pinned.",
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
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to show it; sarif is what code hosts read.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--ignore",
    "ignores",
    type=(str, click.DateTime(["%Y-%m-%d"]), str),
    multiple=True,
    metavar="ID UNTIL REASON",
    help="Leave a failure out until a day (2027-01-31), for a reason; repeatable.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 also for what is possible or cannot be told.")
@click.option("--verbose", "-v", is_flag=True, help="List what is not affected too.")
@catalogue_option
def audit(
    file: Path | None,
    python: Path | None,
    form: str,
    ignores: tuple[tuple[str, dt.datetime, str], ...],
    places: tuple[Path, ...],
    *,
    as_json: bool,
    strict: bool,
    verbose: bool,
) -> int:
    """Say which documented failures concern what is installed or pinned.

    FILE is a requirements.txt, pyproject.toml, uv.lock or pylock.toml; without it, the one that is here. A range is
    not a pin: it is said what it admits. What cannot be told is never taken for good. Exit code 1: something is
    affected.

    Decisions to live with a failure stand in the project's pyproject.toml as `ignore`, a list, in the table
    [tool.repros.audit]: each with its id, its reason and its last day.
    """
    if python is not None and file is not None:
        raise click.UsageError("FILE and --python exclude each other: audit one after the other.")
    catalogue = load_catalogue(places)
    subject = _subject(file, python)
    decisions = _decisions(catalogue, file, ignores)
    found = assess(catalogue, subject, evidence.read())
    done = decide(subject, found, decisions, dt.datetime.now().astimezone().date())
    if form == "sarif":
        click.echo(sarif.text(done))
    elif form == "json" or as_json:
        click.echo(plain_json.text(done))
    else:
        out = console()
        show_text(out, text.text(done, out.width, verbose=verbose))
    return _exit_code(done, strict=strict)


def _subject(file: Path | None, python: Path | None) -> Subject:
    if python is not None:
        meant = find_interpreter(python)
        # By its name, since one without torch can be audited too.
        return sources.environment.read(probe(meant, str(meant), sim=False))
    return sources.read(file if file is not None else sources.find(Path()))


def _decisions(
    catalogue: Catalogue, file: Path | None, given: tuple[tuple[str, dt.datetime, str], ...]
) -> Mapping[str, Ignore]:
    """Return what is to be ignored: what the project says, and the command line over it."""
    project = nearest_pyproject(file.parent if file is not None else Path())
    own = settled(from_pyproject(project), catalogue) if project else {}
    return own | settled((Ignore(id_, reason, until.date()) for id_, until, reason in given), catalogue)


def _exit_code(done: Audit, *, strict: bool) -> int:
    counted = {Status.AFFECTED, *({Status.POSSIBLE, Status.UNKNOWN} if strict else ())}
    return AFFECTED if done.of(*counted) else CLEAN
