"""`repros new`: a script to fill in, or one that a filled form for a new failure fills."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from repros.authoring import form, template
from repros.authoring.fill import fill
from repros.authoring.form import Filled
from repros.cli.options import CHECKOUT, example
from repros.cli.output import console, show_text
from repros.engine.catalogue import CATALOGUE
from repros.errors import ReprosError


class IssueError(ReprosError):
    """A filled form that cannot be read."""


@click.command(
    short_help="Write a new repro script from a template.",
    epilog=example("repros new lr_finder_leaves_results_on_cpu --family lightning", "repros new --from-issue issue.md"),
)
@click.argument("slug", required=False)
@click.option("--family", metavar="NAME", help="Folder that it goes into, such as lightning.")
@click.option(
    "--from-issue",
    "issue",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Fill it from an issue made with the form for a new failure; '-' is stdin.",
)
@click.option(
    "--catalogue",
    type=click.Path(file_okay=False, path_type=Path),
    default=CHECKOUT,
    show_default=True,
    metavar="PATH",
    help="Catalogue that the script goes into.",
)
def new(slug: str | None, family: str | None, issue: Path | None, catalogue: Path) -> None:
    """Write a new repro script from a template, with the next free id.

    SLUG names the script: what goes wrong, in lower case, such as submodule_call_skips_gradient_sync. With
    --from-issue slug and family come from the issue, unless they are given. Of what the header does not take
    it is said why, and the template's own stays.
    """
    filled = form.read(_text(issue)) if issue is not None else None
    if filled is not None:
        slug, family = slug or filled.slug, family or filled.family
    if slug is None:
        raise click.UsageError("Missing argument 'SLUG'.")
    if family is None:
        raise click.UsageError("Missing option '--family'.")
    path = template.write(catalogue, family, slug, [CATALOGUE], lambda text: _filled(text, filled))
    known = path.resolve().is_relative_to(CATALOGUE)
    command = f"repros run {slug}" if known else f"repros run {slug} --catalogue {catalogue}"
    click.echo(f"{path}\nFill it in, run it by hand, then:\n  {command}")


def _filled(text: str, filled: Filled | None) -> str:
    out = console(stderr=True)
    return (
        text if filled is None else fill(text, filled, lambda line: show_text(out, f"not taken over: {line}", "yellow"))
    )


def _text(issue: Path) -> str:
    try:
        return sys.stdin.read() if str(issue) == "-" else issue.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise IssueError(f"{issue} cannot be read ({why}); expected the Markdown of an issue.") from error
