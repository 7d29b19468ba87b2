"""`repros list`: the documented failures, each with the stacks that show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.example import example
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.engine import evidence
from repros.engine.evidence.status import describe_stacks
from repros.engine.stacks import load_stacks
from repros.model import FailureKind, Repro
from repros.model.catalogue import Catalogue
from repros.model.errors import refuse_unknown
from repros.model.ranges import affected_text
from repros.model.settings import CATALOGUE, CatalogueLocations
from repros.text import json_values
from repros.text.failures import failures_table
from repros.text.layout import HANGING, heading
from repros.text.styled import Text
from repros.text.threads import kind_note
from repros.text.wording import relative_to_cwd, wrap

_SHORTEST_TITLE = 90
"""Minimum columns for titles next to other columns; almost all titles fit."""
_GAP = "  "
_NO_SCRIPTS = ("_", "conftest", "test_")
"""Prefixes of file names that are not scripts."""


@dataclass(frozen=True)
class Filter:
    """A filter of repros: all fields must match; an empty field matches all, and one of several values must match."""

    words: tuple[str, ...]
    """Texts that a repro must all contain, ignoring case."""
    families: tuple[str, ...]
    strategies: tuple[str, ...]
    packages: tuple[str, ...]
    kinds: tuple[str, ...]
    silent: bool

    def choose(self, catalogue: Catalogue) -> list[Repro]:
        """Return the matching repros.

        Raises:
            UnknownNameError: no repro has a family, strategy or package of that name.
        """
        refuse_unknown("family", self.families, sorted(repro.family for repro in catalogue))
        refuse_unknown("strategy", self.strategies, sorted(name for repro in catalogue for name in repro.strategies))
        refuse_unknown("package", self.packages, sorted(name for repro in catalogue for name in repro.packages))
        return [repro for repro in catalogue if self._fits(repro)]

    def _fits(self, repro: Repro) -> bool:
        return (
            all(word.casefold() in _searched_text(repro) for word in self.words)
            and _overlap(self.families, [repro.family])
            and _overlap(self.strategies, repro.strategies)
            and _overlap(self.packages, repro.packages)
            and _overlap(self.kinds, [repro.kind.value])
            and (repro.silent or not self.silent)
        )


@click.command(
    "list",
    epilog=example("repros list", "repros list batch norm", "repros list --family lightning --silent"),
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this family; repeatable.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only under this strategy; repeatable.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="Only in this package; repeatable.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in FailureKind]),
    multiple=True,
    metavar="KIND",
    help="Only this kind (bug, by design, misuse, limitation); repeatable.",
)
@click.option("--silent", is_flag=True, help="Only silent failures: wrong results without an error.")
@click.option("--verbose", "-v", is_flag=True, help="Also print path, strategies, devices and stacks.")
@click.option("--markdown", is_flag=True, help="Print all failures as a Markdown table.")
@json_option
@catalogue_option
def list_repros(
    words: tuple[str, ...],
    families: tuple[str, ...],
    strategies: tuple[str, ...],
    packages: tuple[str, ...],
    kinds: tuple[str, ...],
    places: CatalogueLocations,
    *,
    silent: bool,
    verbose: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """List the documented failures, one per line; wide terminals also show affected releases and stacks.

    Each WORD must be in the id, the title, the name of the script, the packages, or the error's class or message. A
    failure must match every option; of a repeated option, one value is enough.
    """
    chosen = Filter(words, families, strategies, packages, kinds, silent).choose(load_catalogue(places))
    if as_json:
        values = [json_values.repro_summary(repro) for repro in chosen]
        echo_json(values)
    elif markdown:
        echo(failures_table(chosen), nl=False)
    else:
        (_print_details if verbose else _print_lines)(chosen, places)
        if not chosen:
            show_text(console(), "no documented failure matches", "dim")
        _name_others(places)


def _print_lines(repros: Sequence[Repro], places: CatalogueLocations) -> None:
    """Print a line per repro, with as many columns as fit; a long title continues on a second line."""
    out = console()
    titles = [f"{repro.title}{kind_note(repro)}{' (silent)' if repro.silent else ''}" for repro in repros]
    longest = max(map(len, titles), default=0)
    room, columns = max(out.width - len(HANGING), 1), []
    for column in _more_columns(repros, places):
        rest = room - len(_GAP) - max(map(len, column), default=0)
        if rest < min(_SHORTEST_TITLE, longest):
            break
        room = rest
        columns.append([_GAP + cell.ljust(max(map(len, column))) for cell in column])
    for row, repro in enumerate(repros):
        first, *others = wrap(titles[row], room)
        cells = "".join(column[row] for column in columns).rstrip()
        show_text(
            out,
            Text(f"{repro.id} ", "bold")
            .append(first.ljust(min(room, longest)) if cells else first)
            .append(cells, "dim"),
        )
        for part in others:
            show_text(out, f"{HANGING}{part}")


def _more_columns(repros: Sequence[Repro], places: CatalogueLocations) -> Iterator[list[str]]:
    """Yield further columns in the order of importance: affected releases, then stacks."""
    yield [affected_text(repro.affected, repro.measurable) for repro in repros]
    known, stacks = evidence.read(locations=places), [*load_stacks(places).values()]
    yield [describe_stacks(repro, stacks, known) for repro in repros]


def _print_details(repros: Sequence[Repro], places: CatalogueLocations) -> None:
    out, known, stacks = console(), evidence.read(locations=places), [*load_stacks(places).values()]
    for repro in repros:
        for line in heading(repro.id, f"{repro.title}{kind_note(repro)}", out.width):
            show_text(out, line)
        parts = [_shown_path(repro.path), f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}"]
        parts += ["silent: a wrong result without an error"] if repro.silent else []
        for part in (*parts, describe_stacks(repro, stacks, known)):
            for row in wrap(part, out.width, HANGING):
                show_text(out, row, "dim")


def _name_others(places: CatalogueLocations) -> None:
    """Report Python files in private catalogues that are ignored because they have no header."""
    private = [place for place in places.scripts if place.is_dir() and place != CATALOGUE]
    if not private:
        return
    from repros.engine.header import has_header  # noqa: PLC0415 - the package's own catalogue is read only if it changed

    for folder in private:
        for path in sorted(folder.rglob("*.py")):
            if not path.name.startswith(_NO_SCRIPTS) and not has_header(path):
                problem = f"ignored: {relative_to_cwd(path)} has no [tool.repro] header"
                show_text(console(stderr=True), problem, "yellow")


def _shown_path(script: Path) -> str:
    """Return `lightning/eval_mode_survives_fit` for a script of the package, and the whole path of any other."""
    own = script.is_relative_to(CATALOGUE)
    return str(script.relative_to(CATALOGUE).with_suffix("") if own else relative_to_cwd(script))


def _searched_text(repro: Repro) -> str:
    errors = [str(variant.signature) for variant in repro.variants]
    return "\n".join([repro.id, repro.title, repro.slug, repro.family, *repro.packages, *errors]).casefold()


def _overlap(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a wanted name is among these, or none is wanted."""
    return not wanted or not set(wanted).isdisjoint(names)
