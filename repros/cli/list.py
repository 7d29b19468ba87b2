"""`repros list`: the documented failures, each with the stacks that show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from repros.cli.shared.example import example
from repros.cli.shared.listing import ListedRepro, Listing, load_listing
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.model.errors import refuse_unknown
from repros.model.kinds import FailureKind
from repros.model.settings import CATALOGUE, CatalogueLocations
from repros.text.layout import HANGING, heading
from repros.text.styled import Text
from repros.text.wording import relative_to_cwd, wrap

if TYPE_CHECKING:
    from repros.model import Repro

_SHORTEST_TITLE = 90
"""Minimum columns for titles next to other columns; almost all titles fit."""
_GAP = "  "


class Filter(NamedTuple):
    """A filter of repros: all fields must match; an empty field matches all, and one of several values must match."""

    words: tuple[str, ...]
    """Texts that a repro must all contain, ignoring case."""
    families: tuple[str, ...]
    strategies: tuple[str, ...]
    packages: tuple[str, ...]
    kinds: tuple[str, ...]
    silent: bool

    def choose(self, listing: Listing) -> list[ListedRepro]:
        """Return the matching repros.

        Raises:
            UnknownNameError: no repro has a family, strategy or package of that name.
        """
        known = [repro.summary for repro in listing.repros]
        refuse_unknown("family", self.families, sorted(repro["family"] for repro in known))
        refuse_unknown("strategy", self.strategies, sorted(name for repro in known for name in repro["strategies"]))
        refuse_unknown("package", self.packages, sorted(name for repro in known for name in repro["packages"]))
        return [repro for repro in listing.repros if self._fits(repro)]

    def _fits(self, repro: ListedRepro) -> bool:
        return (
            all(map(repro.has_word, self.words))
            and _overlap(self.families, [repro.summary["family"]])
            and _overlap(self.strategies, repro.summary["strategies"])
            and _overlap(self.packages, repro.summary["packages"])
            and _overlap(self.kinds, [repro.summary["kind"]])
            and (repro.summary["silent"] or not self.silent)
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
    listing = load_listing(places)
    chosen = Filter(words, families, strategies, packages, kinds, silent).choose(listing)
    if as_json:
        echo_json([repro.summary for repro in chosen])
    elif markdown:
        from repros.text.failures import failures_table  # noqa: PLC0415 - its imports delay the other forms

        echo(failures_table(_whole(chosen, places)), nl=False)
    else:
        (_print_details if verbose else _print_lines)(chosen, places)
        if not chosen:
            show_text(console(), "no documented failure matches", "dim")
        for file in listing.without_header:
            show_text(console(stderr=True), f"ignored: {relative_to_cwd(file)} has no [tool.repro] header", "yellow")


def _whole(listed: Sequence[ListedRepro], places: CatalogueLocations) -> list[Repro]:
    """Return the repros, of which the listing has a part."""
    from repros.cli.shared.inputs import read_catalogue  # noqa: PLC0415 - lines need the listing alone

    by_id = {repro.id: repro for repro in read_catalogue(places)}
    return [by_id[repro.summary["id"]] for repro in listed]


def _print_lines(repros: Sequence[ListedRepro], places: CatalogueLocations) -> None:
    """Print a line per repro, with as many columns as fit; a long title continues on a second line."""
    out = console()
    titles = [
        f"{repro.summary['title']}{repro.note}{' (silent)' if repro.summary['silent'] else ''}" for repro in repros
    ]
    longest = max(map(len, titles), default=0)
    room, columns = max(out.width - len(HANGING), 1), []
    for column in _more_columns(repros, places):
        rest = room - len(_GAP) - max(map(len, column), default=0)
        if rest < min(_SHORTEST_TITLE, longest):
            break
        room = rest
        columns.append([_GAP + cell.ljust(max(map(len, column))) for cell in column])
    for row, repro in enumerate(repros):
        first, *others = [titles[row]] if len(titles[row]) <= room else wrap(titles[row], room)
        cells = "".join(column[row] for column in columns).rstrip()
        show_text(
            out,
            Text(f"{repro.summary['id']} ", "bold")
            .append(first.ljust(min(room, longest)) if cells else first)
            .append(cells, "dim"),
        )
        for part in others:
            show_text(out, f"{HANGING}{part}")


def _more_columns(repros: Sequence[ListedRepro], places: CatalogueLocations) -> Iterator[list[str]]:
    """Yield further columns in the order of importance: affected releases, then stacks."""
    yield [repro.affected for repro in repros]
    yield _stack_texts(_whole(repros, places), places)


def _stack_texts(repros: Sequence[Repro], places: CatalogueLocations) -> list[str]:
    """Return the status of each repro on all stacks; evidence is read only where a terminal has room for it."""
    from repros.engine import evidence  # noqa: PLC0415 - see above
    from repros.engine.evidence.status import describe_stacks  # noqa: PLC0415 - see above
    from repros.engine.stacks import load_stacks  # noqa: PLC0415 - see above

    known, stacks = evidence.read(locations=places), [*load_stacks(places).values()]
    return [describe_stacks(repro, stacks, known) for repro in repros]


def _print_details(listed: Sequence[ListedRepro], places: CatalogueLocations) -> None:
    out, repros = console(), _whole(listed, places)
    for shown, repro, stacks in zip(listed, repros, _stack_texts(repros, places), strict=True):
        for line in heading(repro.id, f"{repro.title}{shown.note}", out.width):
            show_text(out, line)
        parts = [_shown_path(repro.path), f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}"]
        parts += ["silent: a wrong result without an error"] if repro.silent else []
        for part in (*parts, stacks):
            for row in wrap(part, out.width, HANGING):
                show_text(out, row, "dim")


def _shown_path(script: Path) -> str:
    """Return `lightning/eval_mode_survives_fit` for a script of the package, and the whole path of any other."""
    own = script.is_relative_to(CATALOGUE)
    return str(script.relative_to(CATALOGUE).with_suffix("") if own else relative_to_cwd(script))


def _overlap(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a wanted name is among these, or none is wanted."""
    return not wanted or not set(wanted).isdisjoint(names)
