"""Evidence files: for each stack, one TOML file of observed verdicts for each repro, and one ledger.

The file of a repro has a table for each device and strategy, with measured cells only: a cell that could not run is
absent. Date, machine and inputs digest are in the ledger (:mod:`repros.engine.evidence.ledger`), so a repeated
measurement with the same verdicts changes only the ledger. If a verdict changes, the unit's ledger line is deleted,
then the file is written, then the new line: after an interruption the unit has no line and is measured again.
:mod:`repros.engine.matrix.measure` produces measurements; reports and tests read only these files.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from repros import model
from repros.engine.evidence import ledger
from repros.engine.evidence.measurement import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.evidence.toml import inline_table, quoted
from repros.engine.stacks import is_private
from repros.model import Device, Repro, Stack, Verdict
from repros.model.cache import cache_folder
from repros.model.cache.snapshot import files_below, remember
from repros.model.errors import ReprosError
from repros.model.settings import EVIDENCE, PACKAGE, CatalogueLocations

_FILE = re.compile(r".+-[0-9]{4}\.toml")
"""File name of the evidence of one repro."""
_READERS = (Path(__file__).parent, Path(model.__file__).parent)
"""The code that parses evidence, an input of its cache."""
_HEAD = "# {repro} on {stack}, as seen. Written by `repros matrix`; ledger.toml has when and from which inputs.\n"


def folder_for(repro: Repro, stack: Stack) -> Path:
    """Return the evidence folder of a repro on a stack: the package's only if neither is private."""
    if is_private(stack):
        return stack.lock.parents[1] / "evidence"
    private = repro.origin.folder
    return EVIDENCE if private is None else private / "evidence"


def read(folder: Path | None = None, locations: CatalogueLocations = PACKAGE) -> Evidence:
    """Read all evidence below a folder, by default of the package and of the private catalogues.

    If ids clash, the package's measurement of a unit takes precedence.

    Raises:
        ReprosError: A file is damaged.
    """
    if folder is not None:
        return _read_files(sorted(_list_files(folder)))
    folders = [*(private / "evidence" for private in reversed(locations.private_folders)), EVIDENCE]
    files = [file for location in folders for file in sorted(_list_files(location))]
    readers = [file for location in _READERS for file in files_below(location, ".py")]
    return remember("evidence", [*files, *readers], partial(_read_files, files))


def _list_files(folder: Path) -> Iterator[str]:
    """Yield the files of all stacks, as strings: sorting hundreds of `Path` objects takes ten times as long."""
    stacks = [entry.path for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []
    for stack in stacks:
        for entry in os.scandir(stack):
            if entry.name == ledger.NAME or _FILE.fullmatch(entry.name):
                yield entry.path


def _read_files(files: Iterable[str | Path]) -> Evidence:
    by_stack: dict[Path, list[Path]] = {}
    for file in map(Path, files):
        by_stack.setdefault(file.parent, []).append(file)
    return {
        measurement.unit: measurement
        for stack, stack_files in by_stack.items()
        for lines in [_read_ledger(stack)]
        for file in stack_files
        if file.name != ledger.NAME
        for measurement in _read_file(file, lines)
    }


def write(measurements: Iterable[Measurement], folder: Path = EVIDENCE) -> None:
    """Write measurements to their files, replacing earlier ones of the same units.

    Raises:
        ReprosError: An existing file is damaged, or the folder cannot be written.
    """
    by_unit = sorted(measurements, key=lambda measurement: measurement.unit)
    for stack, of_stack in groupby(by_unit, key=lambda measurement: measurement.unit.stack):
        with _changing(folder / stack) as lines:
            for repro, of_repro in groupby(of_stack, key=lambda measurement: measurement.unit.repro):
                file = folder / stack / f"{repro}.toml"
                new = {measurement.unit: measurement for measurement in of_repro}
                known, before = _known(file, lines) | new, _tables(file)
                after = before | {
                    unit: _format_seen(unit, measured.versions, measured.processes, measured.variants)
                    for unit, measured in new.items()
                }
                _drop_lines(file, lines, {unit for unit in before if after[unit] != before[unit]})
                _write_tables(file, after)
                lines.update(_lines_of(known))


def remove(unit: Unit, folder: Path = EVIDENCE) -> None:
    """Delete the measurement of a unit, if any, and the file if it becomes empty.

    Raises:
        ReprosError: The file is damaged, or the folder cannot be written.
    """
    file = folder / unit.stack / f"{unit.repro}.toml"
    with _changing(file.parent) as lines:
        known, tables = _known(file, lines), _tables(file)
        if tables.pop(unit, None):
            _write_tables(file, tables)
            lines.update(_lines_of(known))
            lines.pop(ledger.key_of(unit), None)


@contextlib.contextmanager
def _changing(stack: Path) -> Iterator[ledger.Lines]:
    """Yield the lines of a stack's ledger, and write them at the end of the context.

    Lines of a repro without a file, which was deleted by hand or with its script, are dropped.
    """
    from filelock import FileLock  # noqa: PLC0415 - commands that only read evidence start faster

    lock = cache_folder() / "evidence.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):  # concurrent runs on one stack would lose lines
        lines = _read_ledger(stack)
        yield lines
        files = {entry.name for entry in os.scandir(stack)} if stack.is_dir() else set()
        _write_ledger(stack, {key: line for key, line in lines.items() if f"{key[0]}.toml" in files})


def _write_ledger(stack: Path, lines: ledger.Lines) -> None:
    _replace(stack / ledger.NAME, ledger.format_ledger(stack.name, lines) if lines else None)


def _drop_lines(file: Path, lines: ledger.Lines, outdated: set[Unit]) -> None:
    """Delete the ledger lines of units that are about to change, which would be wrong after an interruption."""
    keys = {ledger.key_of(unit) for unit in outdated} & lines.keys()
    if keys:
        _write_ledger(file.parent, {key: line for key, line in lines.items() if key not in keys})


def _known(file: Path, lines: ledger.Lines) -> Evidence:
    return {measurement.unit: measurement for measurement in _read_file(file, lines)} if file.exists() else {}


def _lines_of(known: Evidence) -> ledger.Lines:
    return {ledger.key_of(unit): ledger.line_of(measurement) for unit, measurement in known.items()}


def _tables(file: Path) -> dict[Unit, str]:
    """Return the text of every table of a file, including those without a ledger line."""
    if not file.exists():
        return {}
    with _refusing_damage(file):
        return {
            unit: _format_seen(unit, table["versions"], table["processes"], variants)
            for unit, table, variants in _read_tables(file)
        }


def _write_tables(file: Path, tables: Mapping[Unit, str]) -> None:
    head = _HEAD.format(repro=file.stem, stack=file.parent.name)
    _replace(file, head + "".join(f"\n{tables[unit]}" for unit in sorted(tables)) if tables else None)


def _replace(file: Path, text: str | None) -> None:
    """Replace a file atomically unless it has this text already; delete it if the text is None."""
    temporary = file.with_suffix(".tmp")
    try:
        if text is None:
            file.unlink(missing_ok=True)
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
    except OSError as error:
        folder = file.parents[1]
        problem = f"cannot write evidence to {folder} ({error.strerror}); name another folder with --evidence."
        raise ReprosError(problem) from error


def _read_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _read_ledger(stack: Path) -> ledger.Lines:
    file = stack / ledger.NAME
    try:
        return ledger.parse_ledger(_read_toml(file)) if file.exists() else {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        remedy = "remove the damaged lines, or the file, and measure again with 'repros matrix'"
        raise ReprosError(f"{file} cannot be read as a ledger ({error}); {remedy}.") from error


def _read_file(file: Path, lines: ledger.Lines) -> Iterator[Measurement]:
    """Yield the measurements of a file; a unit without a ledger line counts as not measured."""
    with _refusing_damage(file):
        for unit, table, variants in _read_tables(file):
            line = dict(lines.get(ledger.key_of(unit), {}))
            builds = line.pop("builds", {})
            # Older files have all fields in the table, without a ledger.
            fields = {**line, **table}
            if "inputs" in fields:
                versions = {name: builds.get(name, number) for name, number in fields.pop("versions").items()}
                yield Measurement(unit, variants=variants, versions=versions, **fields)


def _read_tables(file: Path) -> Iterator[tuple[Unit, dict[str, Any], dict[str, VariantVerdict]]]:
    """Yield each unit of a file, the fields of its table, and the verdict of each variant."""
    with _refusing_damage(file):
        for device, strategies in _read_toml(file).items():
            for strategy, table in strategies.items():
                variants = {
                    name: VariantVerdict(Verdict(fields["verdict"]), fields.get("signature"))
                    for name, fields in table.pop("seen").items()
                }
                yield Unit(file.parent.name, file.stem, Device(device), strategy), table, variants


@contextlib.contextmanager
def _refusing_damage(file: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"{file} cannot be read as evidence ({error}); remove it and measure again with 'repros matrix'."
        raise ReprosError(problem) from error


def _format_seen(
    unit: Unit, versions: Mapping[str, str], processes: int, variants: Mapping[str, VariantVerdict]
) -> str:
    """Return a unit's table; local builds of versions depend on the machine, so the ledger has them."""
    public = {name: quoted(number.partition("+")[0]) for name, number in sorted(versions.items())}
    key = f"{unit.device}.{unit.strategy}"
    lines = [
        f"[{key}]",
        f"versions = {inline_table(public)}",
        f"processes = {processes}",
        f"[{key}.seen]",
        *(f"{name} = {_format_variant(variant)}" for name, variant in sorted(variants.items())),
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_variant(variant: VariantVerdict) -> str:
    values = {"verdict": quoted(variant.verdict)}
    if variant.signature is not None:
        values["signature"] = quoted(variant.signature)
    return inline_table(values)
