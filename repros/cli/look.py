"""`repros list`, `repros show` and `repros stacks`: what there is, without running anything."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.text import Text

from repros import environments, evidence
from repros.cli.options import catalogue_option, example, json_option, load_catalogue
from repros.cli.output import console, show_text
from repros.docs.tables import failures_table
from repros.errors import UnknownNameError
from repros.matrix.text import describe_stacks
from repros.model.stack import Size, Stack
from repros.stacks import load_stacks
from repros.text import describe, facts
from repros.text.wording import wrap

_MARGIN = " " * 9


@click.command(
    "list",
    short_help="List the documented failures.",
    epilog=example("repros list", "repros list --family lightning --silent"),
)
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this folder; repeatable.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only under this strategy; repeatable.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="Only in this package; repeatable.")
@click.option("--silent", is_flag=True, help="Only wrong results without an error.")
@click.option("--markdown", is_flag=True, help="As the table of failures that stands in the README.")
@json_option
@catalogue_option
def list_repros(
    families: tuple[str, ...],
    strategies: tuple[str, ...],
    packages: tuple[str, ...],
    places: tuple[Path, ...],
    *,
    silent: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """List the documented failures, and the stacks on which each was measured to be there or not.

    Of several options all have to fit; of one that is repeated, one.
    """
    catalogue = load_catalogue(places)
    _known("family", families, [repro.family for repro in catalogue])
    _known("strategy", strategies, [name for repro in catalogue for name in repro.strategies])
    _known("package", packages, [name for repro in catalogue for name in repro.packages])
    chosen = [
        repro
        for repro in catalogue
        if repro.family in (families or {repro.family})
        and not set(strategies or repro.strategies).isdisjoint(repro.strategies)
        and not set(packages or repro.packages).isdisjoint(repro.packages)
        and (repro.silent or not silent)
    ]
    if as_json:
        click.echo(json.dumps([facts.brief(repro) for repro in chosen], indent=2, ensure_ascii=False))
        return
    if markdown:
        click.echo(failures_table(chosen), nl=False)
        return
    out, known, over = console(), evidence.read(), [*load_stacks().values()]
    for repro in chosen:
        heading = wrap(f"{repro.id} {repro.title}", out.width, hanging=_MARGIN)
        show_text(out, Text("\n".join(heading), "bold"))
        kind = f"{repro.family}/{repro.slug}", f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}"
        said = ["silent: a wrong result without an error"] if repro.silent else []
        for part in (*kind, *said, describe_stacks(repro, over, known)):
            for line in wrap(part, out.width, _MARGIN):
                show_text(out, line, "dim")
    if not chosen:
        show_text(out, "no documented failure fits", "dim")


def _known(kind: str, names: tuple[str, ...], known: list[str]) -> None:
    """Refuse a name that nothing has."""
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, sorted(set(known)))


@click.command(short_help="Show one failure: cause, fixes, what they change.", epilog=example("repros show RPR-0005"))
@click.argument("id_", metavar="ID")
@json_option
@catalogue_option
def show(id_: str, places: tuple[Path, ...], *, as_json: bool) -> None:
    """Show one failure: symptom, cause, fixes that work and do not, and what the fix changes.

    ID is an id such as RPR-0005, or the name of the script.
    """
    repro = load_catalogue(places).find(id_)
    if as_json:
        click.echo(json.dumps(facts.full(repro), indent=2, ensure_ascii=False))
        return
    out = console()
    show_text(out, describe.text(repro, out.width))


@click.command(short_help="List the sets of library versions to run on.", epilog=example("repros stacks"))
@json_option
def stacks(*, as_json: bool) -> None:
    """List the sets of library versions that repros run on, with their sizes, and which are ready."""
    known = load_stacks().values()
    if as_json:
        places = [environments.place(stack) if environments.ready(stack) else None for stack in known]
        said = [facts.stack(stack, place) for stack, place in zip(known, places, strict=True)]
        click.echo(json.dumps(said, indent=2, ensure_ascii=False))
        return
    out = console()
    for stack in known:
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
