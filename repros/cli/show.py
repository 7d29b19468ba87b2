"""`repros show`: failures in full."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from repros.cli.shared.example import example
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.listing import load_listing
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.model.errors import ReprosError, UnknownNameError
from repros.model.settings import CatalogueLocations
from repros.text import json_values
from repros.text.describe import describe
from repros.text.styled import Text

if TYPE_CHECKING:
    from repros.model import Repro
    from repros.model.catalogue import Catalogue


@click.command(epilog=example("repros show RPR-0005", "repros show 5 17"))
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@json_option
@catalogue_option
def show(ids: tuple[str, ...], places: CatalogueLocations, *, as_json: bool) -> None:
    """Print a failure: symptom, cause, documented fixes with their verdicts, and a diff of the fix.

    ID is an id such as RPR-0005 or 5, or the name of the script. JSON of several is a list.
    """
    catalogue = load_catalogue(places)
    repros = list(dict.fromkeys(_find(catalogue, name, places) for name in ids))
    if as_json:
        details = [json_values.repro_details(repro) for repro in repros]
        echo_json(details if len(ids) > 1 else details[0])
        return
    out = console()
    show_text(out, Text("\n\n").join(describe(repro, out.width) for repro in repros))


def _find(catalogue: Catalogue, name: str, places: CatalogueLocations) -> Repro:
    """Return the repro with an id or a name.

    Raises:
        ReprosError: none has it; the message names those that have it as a word.
    """
    try:
        return catalogue.find(name)
    except UnknownNameError:
        listing = load_listing(places)
        having = [repro.summary["id"] for repro in listing.repros if repro.has_word(name)]
        is_part = any(name in repro.slug for repro in catalogue)  # the nearest name is suggested
        if is_part or not having:
            raise
    more = f" and {len(having) - _MOST_NAMED} more" if len(having) > _MOST_NAMED else ""
    words = f"{', '.join(having[:_MOST_NAMED])}{more} {'has' if len(having) == 1 else 'have'} this word"
    raise ReprosError(f"{name!r} is no id, but {words}: repros list {shlex.quote(name)}")


_MOST_NAMED = 3
