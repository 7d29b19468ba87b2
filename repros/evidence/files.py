"""Evidence on disk: for each stack one TOML file for each repro with what was seen, and one ledger.

A repro's file has a table for each device and strategy. It holds only what was measured: a cell that could not run is
absent, never guessed. When, where and from which inputs is in the ledger (:mod:`repros.evidence.ledger`), so a new
measurement that sees the same changes the ledger alone. When a unit shows something new, its old line is removed, then
what was seen is written, then the new line: in between the unit has no line, and is measured again.
:mod:`repros.matrix.measure` produces the measurements; reports and tests read nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from repros.cache import cache_folder
from repros.cache.snapshot import files_below, remember
from repros.errors import ReprosError
from repros.evidence import ledger
from repros.evidence.measurement import Evidence, Measurement, VariantVerdict
from repros.evidence.toml import inline_table, quoted
from repros.evidence.unit import Unit
from repros.model import Device, Repro, Stack, Verdict
from repros.settings import PACKAGE, Places
from repros.stacks import is_private

FOLDER = Path(__file__).parent
"""The evidence that comes with the package."""

_FILE = re.compile(r".+-[0-9]{4}\.toml")
"""The name of a file with the evidence of one id."""
_READERS = (FOLDER, FOLDER.parent / "model")
"""The code that makes evidence of files."""
_HEAD = "# {repro} on {stack}, as seen. Written by `repros matrix`; ledger.toml has when and from which inputs.\n"


def folder_for(repro: Repro, stack: Stack) -> Path:
    """Return the folder for the evidence of a repro on a stack: the package's only if both are of the package."""
    if is_private(stack):
        return stack.lock.parents[1] / "evidence"
    private = repro.origin.folder
    return FOLDER if private is None else private / "evidence"


def read(folder: Path | None = None, places: Places = PACKAGE) -> Evidence:
    """Read all evidence below a folder; by default that of the package and that of these private catalogues.

    Of two measurements of one unit, which clashing ids lead to, the package's counts.

    Raises:
        ReprosError: A file is damaged.
    """
    if folder is not None:
        return _read_files(sorted(_list_files(folder)))
    folders = [*(private / "evidence" for private in reversed(places.private_folders)), FOLDER]
    files = [file for place in folders for file in sorted(_list_files(place))]
    readers = [file for place in _READERS for file in files_below(place, ".py")]
    return remember("evidence", [*files, *readers], partial(_read_files, files))


def _list_files(folder: Path) -> Iterator[str]:
    """Yield the paths of all stacks' files; as text, which sorts in a tenth of the time of hundreds of paths."""
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
        for stack, found in by_stack.items()
        for lines in [_read_ledger(stack)]
        for file in found
        if file.name != ledger.NAME
        for measurement in _read_file(file, lines)
    }


def write(measurements: Iterable[Measurement], folder: Path = FOLDER) -> None:
    """Write measurements into their files, in place of earlier ones of the same units.

    Raises:
        ReprosError: An existing file is damaged, or the folder cannot be written.
    """
    by_unit = sorted(measurements, key=lambda measurement: measurement.unit)
    for stack, of_stack in groupby(by_unit, key=lambda measurement: measurement.unit.stack):
        with _changing(folder / stack) as lines:
            for repro, group in groupby(of_stack, key=lambda measurement: measurement.unit.repro):
                file = folder / stack / f"{repro}.toml"
                before = _known(file, lines)
                known = before | {measurement.unit: measurement for measurement in group}
                _forget_outdated(file.parent, lines, before, known)
                _write_seen(file, known)
                lines.update({ledger.key_of(known[unit]): ledger.line_of(known[unit]) for unit in known})


def remove(unit: Unit, folder: Path = FOLDER) -> None:
    """Remove the measurement of a unit, and its file with the last one; without one, do nothing.

    Raises:
        ReprosError: The file is damaged, or the folder cannot be written.
    """
    file = folder / unit.stack / f"{unit.repro}.toml"
    with _changing(file.parent) as lines:
        known = _known(file, lines)
        if measurement := known.pop(unit, None):
            _write_seen(file, known)
            lines.pop(ledger.key_of(measurement), None)


@contextlib.contextmanager
def _changing(stack: Path) -> Iterator[ledger.Lines]:
    """Yield the lines of a stack's ledger, and write them when what was seen has been written."""
    from filelock import FileLock  # noqa: PLC0415 - `repros list` and `repros audit` read evidence and write none

    lock = cache_folder() / f"evidence-{zlib.crc32(os.fsencode(stack.absolute())):08x}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):  # two runs on one stack would each lose the other's lines
        lines = _read_ledger(stack)
        before = dict(lines)
        yield lines
        if lines != before:
            _replace(stack / ledger.NAME, ledger.format_ledger(stack.name, lines) if lines else None)


def _forget_outdated(stack: Path, lines: ledger.Lines, before: Evidence, after: Evidence) -> None:
    """Remove the lines of what is about to change: after an interruption they would vouch for what they never saw."""
    outdated = {ledger.key_of(old) for unit, old in before.items() if _format_seen(old) != _format_seen(after[unit])}
    if outdated & lines.keys():
        kept = {key: line for key, line in lines.items() if key not in outdated}
        _replace(stack / ledger.NAME, ledger.format_ledger(stack.name, kept) if kept else None)


def _known(file: Path, lines: ledger.Lines) -> Evidence:
    return {measurement.unit: measurement for measurement in _read_file(file, lines)} if file.exists() else {}


def _write_seen(file: Path, known: Evidence) -> None:
    head = _HEAD.format(repro=file.stem, stack=file.parent.name)
    tables = "".join(f"\n{_format_seen(known[unit])}" for unit in sorted(known))
    _replace(file, head + tables if known else None)


def _replace(file: Path, text: str | None) -> None:
    """Replace a file in one step, unless it has this text already; remove it if there is none."""
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
    import tomli  # noqa: PLC0415 # compiled: reads hundreds of files in half the time of tomllib, if any has changed

    return tomli.loads(file.read_text(encoding="utf-8"))


def _read_ledger(stack: Path) -> ledger.Lines:
    file = stack / ledger.NAME
    try:
        return ledger.parse_ledger(_read_toml(file)) if file.exists() else {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"{file} cannot be read as a ledger ({error}); remove it and measure again with 'repros matrix'."
        raise ReprosError(problem) from error


def _read_file(file: Path, lines: ledger.Lines) -> Iterator[Measurement]:
    """Yield the measurements of a file; a unit without a line in the ledger counts as not measured."""
    try:
        for device, strategies in _read_toml(file).items():
            for strategy, table in strategies.items():
                unit = Unit(file.parent.name, file.stem, Device(device), strategy)
                variants = {
                    name: VariantVerdict(Verdict(seen["verdict"]), seen.get("signature"))
                    for name, seen in table.pop("seen").items()
                }
                line = dict(lines.get((file.stem, device, strategy), {}))
                builds = line.pop("builds", {})
                # Before there were ledgers, a table had all fields itself.
                fields = {**line, **table}
                if "inputs" in fields:
                    versions = {name: builds.get(name, number) for name, number in fields.pop("versions").items()}
                    yield Measurement(unit, variants=variants, versions=versions, **fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"{file} cannot be read as evidence ({error}); remove it and measure again with 'repros matrix'."
        raise ReprosError(problem) from error


def _format_seen(measurement: Measurement) -> str:
    versions = {name: quoted(number) for name, number in sorted(ledger.public_versions(measurement).items())}
    key = f"{measurement.unit.device}.{measurement.unit.strategy}"
    lines = [
        f"[{key}]",
        f"versions = {inline_table(versions)}",
        f"processes = {measurement.processes}",
        f"[{key}.seen]",
        *(f"{name} = {_format_variant(variant)}" for name, variant in sorted(measurement.variants.items())),
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_variant(variant: VariantVerdict) -> str:
    values = {"verdict": quoted(variant.verdict)}
    if variant.signature is not None:
        values["signature"] = quoted(variant.signature)
    return inline_table(values)
