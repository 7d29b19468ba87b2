"""`repros list`: the documented failures, each with the stacks that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from repros import evidence
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.docs.tables import failures_table
from repros.errors import refuse_unknown
from repros.matrix.spans import describe_stacks
from repros.model import Kind, Repro
from repros.model.catalogue import Catalogue
from repros.settings import CATALOGUE, Places
from repros.stacks import load_stacks
from repros.text import json_values
from repros.text.layout import HANGING, heading
from repros.text.threads import kind_note
from repros.text.wording import relative_to_cwd, wrap

_NO_SCRIPTS = ("_", "conftest", "test_")
"""How the names of files begin that nobody takes for a script."""


@dataclass(frozen=True)
class Filter:
    """Which repros to list: those that fit every field; an empty one fits all, of several names one must fit."""

    families: tuple[str, ...]
    strategies: tuple[str, ...]
    packages: tuple[str, ...]
    kinds: tuple[str, ...]
    silent: bool

    def choose(self, catalogue: Catalogue) -> list[Repro]:
        """Return the repros that fit.

        Raises:
            UnknownNameError: no repro has a family, strategy or package of that name.
        """
        refuse_unknown("family", self.families, sorted(repro.family for repro in catalogue))
        refuse_unknown("strategy", self.strategies, sorted(name for repro in catalogue for name in repro.strategies))
        refuse_unknown("package", self.packages, sorted(name for repro in catalogue for name in repro.packages))
        return [repro for repro in catalogue if self._fits(repro)]

    def _fits(self, repro: Repro) -> bool:
        return (
            _overlap(self.families, [repro.family])
            and _overlap(self.strategies, repro.strategies)
            and _overlap(self.packages, repro.packages)
            and _overlap(self.kinds, [repro.kind.value])
            and (repro.silent or not self.silent)
        )


@click.command(
    "list",
    epilog=example("repros list", "repros list --family lightning --silent"),
)
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this folder; repeatable.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only under this strategy; repeatable.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="Only in this package; repeatable.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in Kind]),
    multiple=True,
    metavar="KIND",
    help="Only this kind (bug, by design, misuse, limitation); repeatable.",
)
@click.option("--silent", is_flag=True, help="Only wrong results without an error.")
@click.option("--markdown", is_flag=True, help="Print the table of docs/failures.md.")
@json_option
@catalogue_option
def list_repros(
    families: tuple[str, ...],
    strategies: tuple[str, ...],
    packages: tuple[str, ...],
    kinds: tuple[str, ...],
    places: Places,
    *,
    silent: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """List the documented failures, each with the stacks that were measured to show it or not.

    A failure must fit all of the options that are given, and one value of a repeated option.
    """
    chosen = Filter(families, strategies, packages, kinds, silent).choose(load_catalogue(places))
    if as_json:
        values = [json_values.repro_summary(repro) for repro in chosen]
        echo_json(values)
    elif markdown:
        echo(failures_table(chosen), nl=False)
    else:
        _print_list(chosen, places)
        _name_others(places)


def _print_list(repros: Sequence[Repro], places: Places) -> None:
    out, known, stacks = console(), evidence.read(places=places), [*load_stacks(places).values()]
    for repro in repros:
        for line in heading(repro.id, f"{repro.title}{kind_note(repro)}", out.width):
            show_text(out, line)
        parts = [_shown_path(repro.path), f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}"]
        parts += ["silent: a wrong result without an error"] if repro.silent else []
        for part in (*parts, describe_stacks(repro, stacks, known)):
            for row in wrap(part, out.width, HANGING):
                show_text(out, row, "dim")
    if not repros:
        show_text(out, "no documented failure fits", "dim")


def _name_others(places: Places) -> None:
    """Name the files in private catalogues that look like scripts and are none, since they have no header."""
    private = [place for place in places.scripts if place.is_dir() and place != CATALOGUE]
    if not private:
        return
    from repros.engine.header import has_header  # noqa: PLC0415 - the package's own catalogue is read only if it changed

    for folder in private:
        for path in sorted(folder.rglob("*.py")):
            if not path.name.startswith(_NO_SCRIPTS) and not has_header(path):
                problem = f"left out: {relative_to_cwd(path)} has no [tool.repro] header"
                show_text(console(stderr=True), problem, "yellow")


def _shown_path(script: Path) -> str:
    """Return `lightning/eval_mode_survives_fit` for a script of the package, and the whole path of any other."""
    own = script.is_relative_to(CATALOGUE)
    return str(script.relative_to(CATALOGUE).with_suffix("") if own else relative_to_cwd(script))


def _overlap(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a wanted name is among these; every name fits if none is wanted."""
    return not wanted or not set(wanted).isdisjoint(names)
