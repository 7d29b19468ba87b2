"""`repros export`: a standalone script, or an OSV record."""

from __future__ import annotations

from pathlib import Path

import click

from repros.advise.export import osv, pins, script
from repros.cli.shared.example import example
from repros.cli.shared.inputs import choose_interpreter, load_catalogue
from repros.cli.shared.options import catalogue_option, python_option
from repros.cli.shared.output import write_new
from repros.cli.shared.streams import echo
from repros.engine import evidence
from repros.engine.probe import probe
from repros.engine.stacks import stack
from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.text.control import dump_json


@click.command(
    epilog=example(
        "repros export RPR-0005",
        "repros export RPR-0005 --variant fixed -o fixed.py",
        "repros export --minimal RPR-0005 failing fixed -o report.py",
    ),
)
@click.argument("id_", metavar="ID")
@click.argument("variants", nargs=-1, metavar="[VARIANT]...")
@click.option("--minimal", is_flag=True, help="Write only these variants, for a bug report. Default: failing, fixed.")
@click.option("--variant", metavar="NAME", help="Variant that runs by default.  [default: failing]")
@click.option("--stack", "stack_name", metavar="NAME", help="Pin this stack's versions. Default: the repro's `home`.")
@python_option("Pin the versions of this interpreter's environment.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Output file; '-' is stdout.  [default: rpr_NNNN.py or x_RPR-NNNN.json]",
)
@click.option("--osv", "as_osv", is_flag=True, help="Write an OSV record for vulnerability scanners.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@catalogue_option
def export(
    id_: str,
    variants: tuple[str, ...],
    variant: str | None,
    stack_name: str | None,
    python: Path | None,
    output: Path | None,
    places: CatalogueLocations,
    *,
    minimal: bool,
    as_osv: bool,
    force: bool,
) -> None:
    """Write a repro as a standalone script for `uv run FILE`, independent of this project.

    The script's header pins the versions on which the failure was measured, including transitive dependencies. With
    --osv, the file is an OSV record of the affected releases; a note lists facts that OSV cannot express.

    With --minimal, it is a script for a bug report: the named variants and the code that they use, without this
    project's table in the header.
    """
    if stack_name is not None and python is not None:
        raise click.UsageError("--stack and --python exclude each other: each brings its own versions.")
    if variants and not minimal:
        raise click.UsageError("VARIANT is for --minimal; --variant NAME sets the variant that runs by default.")
    if minimal and (as_osv or variant is not None):
        raise click.UsageError("--minimal excludes --osv and --variant: it takes its variants after the ID.")
    repro = load_catalogue(places).find(id_)
    if as_osv:
        record = osv.osv_record(repro, evidence.read(locations=places))
        text = dump_json(record) + "\n"
        file = output or Path(f"{record['id']}.json")
    else:
        pinned = _choose_pins(repro, stack_name, python, places)
        chosen = variants or script.report_variants(repro)
        text = (
            script.export_minimal(repro, pinned, chosen)
            if minimal
            else script.export_script(repro, pinned, variant or "failing")
        )
        file = output or script.script_file_name(repro)
        if str(file) != "-":
            _refuse_a_catalogue(file, repro, places)
    if str(file) == "-":
        echo(text, nl=False)
        return
    write_new(file, text, force=force)
    echo(file if as_osv else f"{file}\nRun it:\n  uv run {file}")


def _choose_pins(repro: Repro, stack_name: str | None, python: Path | None, places: CatalogueLocations) -> pins.Pins:
    if python is not None:
        return pins.pins_of_environment(repro, probe(choose_interpreter(python), sim=False))
    chosen = stack(stack_name or repro.home, places)
    measured = any((unit.repro, unit.stack) == (repro.id, chosen.name) for unit in evidence.read(locations=places))
    return pins.pins_of_stack(repro, chosen, measured=measured)


def _refuse_a_catalogue(file: Path, repro: Repro, places: CatalogueLocations) -> None:
    """Refuse an output file in a catalogue, where it would be a second script with the repro's id.

    Raises:
        ReprosError: the file would be read as a part of a catalogue in use.
    """
    for place in places.scripts:
        if place.is_dir() and file.resolve().is_relative_to(place.resolve()):
            problem = f"{file} is in the catalogue {place}, where it would be a second {repro.id}"
            raise ReprosError(f"{problem}; name a file elsewhere with --output.")
