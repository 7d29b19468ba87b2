"""Evidence on disk: one TOML file for each stack and repro, laid out to be read in a diff.

A file has a table for each device and strategy. It holds only what was measured: a cell that could not run is absent,
never guessed. :mod:`repros.matrix.measure` produces the measurements; reports and tests read nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import tomli  # compiled: reads hundreds of files in half the time of tomllib

from repros.errors import ReprosError
from repros.evidence.measurement import Evidence, Measurement, VariantVerdict
from repros.evidence.unit import Unit
from repros.model import Device, Repro, Stack, Verdict
from repros.settings import folder_of, private_folders
from repros.stacks import is_private

FOLDER = Path(__file__).parent
"""The evidence that comes with the package."""

_FILES = "*/*-[0-9][0-9][0-9][0-9].toml"
"""The files of all stacks: a folder for each, in it a file for each id."""
_HEAD = "# {repro} on {stack}, as measured. Written by `repros matrix`.\n"


def folder_for(repro: Repro, stack: Stack) -> Path:
    """Return the folder for the evidence of a repro on a stack: the package's only if both are of the package."""
    if is_private(stack):
        return stack.lock.parents[1] / "evidence"
    private = folder_of(repro.path)
    return FOLDER if private is None else private / "evidence"


def read(folder: Path | None = None) -> Evidence:
    """Read all evidence below a folder; by default that of the package and that of the private catalogues in use.

    Of two measurements of one unit, which clashing ids lead to, the package's counts.

    Raises:
        ReprosError: A file is damaged.
    """
    folders = [folder] if folder else [*(private / "evidence" for private in reversed(private_folders())), FOLDER]
    files = (file for one in folders for file in sorted(one.glob(_FILES)))
    return {measurement.unit: measurement for file in files for measurement in _read_file(file)}


def write(measurements: Iterable[Measurement], folder: Path = FOLDER) -> None:
    """Write measurements into their files, in place of earlier ones of the same units.

    Raises:
        ReprosError: An existing file is damaged, or the folder cannot be written.
    """
    by_unit = sorted(measurements, key=lambda measurement: measurement.unit)
    for (stack, repro), group in groupby(by_unit, key=lambda one: (one.unit.stack, one.unit.repro)):
        file = folder / stack / f"{repro}.toml"
        known = {one.unit: one for one in _read_file(file)} if file.exists() else {}
        _write_file(file, known | {one.unit: one for one in group})


def remove(unit: Unit, folder: Path = FOLDER) -> None:
    """Remove the measurement of a unit, and its file with the last one; without one, do nothing.

    Raises:
        ReprosError: The file is damaged, or the folder cannot be written.
    """
    file = folder / unit.stack / f"{unit.repro}.toml"
    known = {one.unit: one for one in _read_file(file)} if file.exists() else {}
    if known.pop(unit, None):
        _write_file(file, known)


def _write_file(file: Path, known: Evidence) -> None:
    """Replace a file in one step; remove it if nothing is known."""
    tables = "".join(f"\n{_format_measurement(known[unit])}" for unit in sorted(known))
    temporary = file.with_suffix(".tmp")
    try:
        if not known:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(_HEAD.format(repro=file.stem, stack=file.parent.name) + tables, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        folder = file.parents[1]
        problem = f"cannot write evidence to {folder} ({error.strerror}); name another folder with --evidence."
        raise ReprosError(problem) from error


def _read_file(file: Path) -> Iterator[Measurement]:
    try:
        devices = tomli.loads(file.read_text(encoding="utf-8"))
        for device, strategies in devices.items():
            for strategy, table in strategies.items():
                unit = Unit(file.parent.name, file.stem, Device(device), strategy)
                variants = {
                    name: VariantVerdict(Verdict(one["verdict"]), one.get("signature"))
                    for name, one in table.pop("seen").items()
                }
                yield Measurement(unit, variants=variants, **table)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"{file} cannot be read as evidence ({error}); remove it and measure again with 'repros matrix'."
        raise ReprosError(problem) from error


def _format_measurement(measurement: Measurement) -> str:
    versions = ", ".join(f"{name} = {_toml_string(number)}" for name, number in sorted(measurement.versions.items()))
    key = f"{measurement.unit.device}.{measurement.unit.strategy}"
    lines = [
        f"[{key}]",
        f"inputs = {_toml_string(measurement.inputs)}",
        f"date = {measurement.date}",
        f"launch = {_toml_string(measurement.launch)}",
        f"platform = {_toml_string(measurement.platform)}",
        f"python = {_toml_string(measurement.python)}",
        f"versions = {{ {versions} }}",
        f"processes = {measurement.processes}",
        f"seconds = {measurement.seconds}",
        f"[{key}.seen]",
        *(f"{name} = {{ {_format_variant(one)} }}" for name, one in sorted(measurement.variants.items())),
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_variant(variant: VariantVerdict) -> str:
    signature = "" if variant.signature is None else f", signature = {_toml_string(variant.signature)}"
    return f"verdict = {_toml_string(variant.verdict)}{signature}"


def _toml_string(value: str) -> str:
    """Return a TOML string on one line: JSON's escapes are valid in TOML, which also needs one for DEL."""
    clean = value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")
