"""`repros list`, `repros show` and `repros stacks`: what there is, without running anything."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from repros.cli.options import catalogue_option, example, load_shelf
from repros.cli.output import console, show_text
from repros.matrix import evidence
from repros.model.stack import Size, Stack
from repros.report import catalogue, describe, measured
from repros.report.spoken import listed, wrap
from repros.stacks import environments, load_stacks

_MARGIN = " " * 9


@click.command("list", short_help="List the documented failures.", epilog=example("repros list"))
@click.option("--markdown", is_flag=True, help="As the table of failures that stands in the README.")
@catalogue_option
def list_repros(places: tuple[Path, ...], *, markdown: bool) -> None:
    """List the documented failures, and the stacks on which each was measured to be there or not."""
    shelf = load_shelf(places)
    if markdown:
        click.echo(catalogue.table(shelf), nl=False)
        return
    out, known, over = console(), evidence.read(), [*load_stacks().values()]
    for repro in shelf:
        heading = wrap(f"{repro.id} {repro.title}", out.width, hanging=_MARGIN)
        show_text(out, Text("\n".join(heading), "bold"))
        show_text(out, f"{_MARGIN}{repro.family}/{repro.slug}", "dim")
        show_text(out, f"{_MARGIN}{listed(repro.strategies)} on {listed(repro.devices)}", "dim")
        for line in wrap(measured.sentence(repro, over, known), out.width, _MARGIN):
            show_text(out, line, "dim")


@click.command(short_help="Show one failure: cause, fixes, what they change.", epilog=example("repros show RPR-0005"))
@click.argument("id_", metavar="ID")
@catalogue_option
def show(id_: str, places: tuple[Path, ...]) -> None:
    """Show one failure: symptom, cause, fixes that work and do not, and what the fix changes.

    ID is an id such as RPR-0005, or the name of the script.
    """
    out = console()
    show_text(out, describe.text(load_shelf(places).find(id_), out.width))


@click.command(short_help="List the sets of library versions to run on.", epilog=example("repros stacks"))
def stacks() -> None:
    """List the sets of library versions that repros run on, with their sizes, and which are ready."""
    out = console()
    for stack in load_stacks().values():
        for line in _described(stack, out.width):
            show_text(out, line)


def _described(stack: Stack, width: int) -> list[Text]:
    ready = environments.ready(stack)
    state = f"ready in {environments.place(stack)}" if ready else f"not here yet: {_cost(stack)}"
    versions = ", ".join(str(requirement).replace("==", " ") for requirement in stack.requirements)
    body = {stack.about: "", f"python {stack.python}, {versions}": "", state: "green" if ready else "dim"}
    lines = [Text(stack.name, "bold")]
    for part, style in body.items():
        lines += [Text(line, style) for line in wrap(part, width, "  ")]
    return lines


def _cost(stack: Stack) -> str:
    """Return what making the environment costs, with torch's CUDA build and with its CPU build."""
    cpu = f"; with UV_TORCH_BACKEND=cpu {_size(stack.cpu)}" if stack.cpu else ""
    return f"{_size(stack.cuda)}{cpu}"


def _size(size: Size) -> str:
    return f"{size.download / 1e9:.1f} GB to download, {size.unpacked / 1e9:.1f} GB on disk"
