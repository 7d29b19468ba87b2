"""`repros show`: one failure in full."""

from __future__ import annotations

import click

from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.settings import Places
from repros.text import json_values
from repros.text.describe import describe


@click.command(epilog=example("repros show RPR-0005"))
@click.argument("id_", metavar="ID")
@json_option
@catalogue_option
def show(id_: str, places: Places, *, as_json: bool) -> None:
    """Show one failure: its symptom, its cause, what fixes it, what does not, and a diff of the fix.

    ID is an id such as RPR-0005, or the name of the script.
    """
    repro = load_catalogue(places).find(id_)
    if as_json:
        echo_json(json_values.repro_details(repro))
        return
    out = console()
    show_text(out, describe(repro, out.width))
