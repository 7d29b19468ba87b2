"""`repros new`: a script to fill in."""

from __future__ import annotations

from pathlib import Path

import click

from repros import scaffold
from repros.cli.options import CHECKOUT, example
from repros.shelf import CATALOGUE


@click.command(
    short_help="Write a new repro script from a template.",
    epilog=example("repros new lr_finder_leaves_results_on_cpu --family lightning"),
)
@click.argument("slug")
@click.option("--family", required=True, metavar="NAME", help="Folder that it goes into, such as lightning.")
@click.option(
    "--catalogue",
    type=click.Path(file_okay=False, path_type=Path),
    default=CHECKOUT,
    show_default=True,
    metavar="PATH",
    help="Catalogue that the script goes into.",
)
def new(slug: str, family: str, catalogue: Path) -> None:
    """Write a new repro script from a template, with the next free id.

    SLUG names the script: what goes wrong, in lower case, such as submodule_call_skips_gradient_sync.
    """
    path = scaffold.write(catalogue, family, slug, known=[CATALOGUE])
    known = path.resolve().is_relative_to(CATALOGUE)
    command = f"repros run {slug}" if known else f"repros run {slug} --catalogue {catalogue}"
    click.echo(f"{path}\nFill it in, run it by hand, then:\n  {command}")
