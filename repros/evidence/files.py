"""Evidence on disk: one TOML file for each stack and repro, laid out to be read in a diff.

A file has a table for each device and strategy. It holds only what was measured: a cell that could not run is absent,
never guessed. :mod:`repros.matrix.measure` produces the measurements; reports and tests read nothing else.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from repros.cache.snapshot import files_below, remember
from repros.errors import ReprosError
from repros.evidence.measurement import Evidence, Measurement, VariantVerdict
from repros.evidence.unit import Unit
from repros.model import Device, Repro, Stack, Verdict
from repros.settings import folder_of, private_folders
from repros.stacks import is_private

FOLDER = Path(__file__).parent
"""The evidence that comes with the package."""

_FILE = re.compile(r".+-[0-9]{4}\.toml")
"""The name of a file with the evidence of one id."""
_READERS = (FOLDER, FOLDER.parent / "model")
"""The code that makes evidence of files."""
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
    if folder is not None:
        return _read_files(sorted(_list_files(folder)))
    folders = [*(private / "evidence" for private in reversed(private_folders())), FOLDER]
    files = [file for one in folders for file in sorted(_list_files(one))]
    readers = [file for place in _READERS for file in files_below(place, ".py")]
    return remember("evidence", [*files, *readers], partial(_read_files, files))


def _list_files(folder: Path) -> Iterator[str]:
    """Yield the paths of all stacks' files; as text, which sorts in a tenth of the time of hundreds of paths."""
    stacks = [entry.path for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []
    yield from (entry.path for stack in stacks for entry in os.scandir(stack) if _FILE.fullmatch(entry.name))


def _read_files(files: Iterable[str | Path]) -> Evidence:
    return {measurement.unit: measurement for file in files for measurement in _read_file(Path(file))}


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
    import tomli  # noqa: PLC0415 # compiled: reads hundreds of files in half the time of tomllib, if any has changed

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
