"""What was measured, as it lies in the repository: a file for each stack and repro, made to be read in a diff.

A file has a table for each device and strategy. Only what was seen is in it: a cell that could not be run is absent,
never guessed. :mod:`repros.matrix.campaign` writes it; the tests and the reports read nothing else.
"""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from repros.errors import ReprosError
from repros.evidence.unit import Unit
from repros.model import Verdict

EVIDENCE = Path(__file__).parents[1] / "evidence"
"""The evidence that comes with the package."""

_HEAD = "# {repro} on {stack}, as measured. Written by `repros matrix`.\n"


class EvidenceError(ReprosError):
    """A file of evidence that cannot be read."""

    def __init__(self, file: Path, problem: str) -> None:
        """Compose the sentence."""
        super().__init__(f"{file}: {problem}; remove it and measure it again with 'repros matrix'.")


class EvidenceNotKeptError(ReprosError):
    """A folder that does not take evidence."""

    def __init__(self, folder: Path, error: OSError) -> None:
        """Compose the sentence."""
        super().__init__(f"{folder} does not take evidence ({error.strerror}); name another folder with --evidence.")


@dataclass(frozen=True)
class Seen:
    """How one variant ended."""

    verdict: Verdict
    signature: str | None = None
    """The failure as observed, normalised; None when nothing failed."""


@dataclass(frozen=True)
class Measurement:
    """One unit's evidence."""

    unit: Unit
    inputs: str
    """Digest of what the verdicts depend on, :func:`repros.matrix.unit.inputs`."""
    date: dt.date
    launch: str
    platform: str
    python: str
    versions: Mapping[str, str]
    """Of the packages that the repro speaks of, as really installed."""
    processes: int
    seconds: float
    """What its cells took, one after another."""
    seen: Mapping[str, Seen]
    """By variant."""


Evidence = dict[Unit, Measurement]


def measurement(unit: Unit, inputs: str, date: dt.date, lines: Sequence[Mapping[str, Any]]) -> Measurement:
    """Return the evidence in a unit's record lines, of which there is at least one."""
    first = lines[0]
    return Measurement(
        unit=unit,
        inputs=inputs,
        date=date,
        launch=first["launch"],
        platform=first["platform"],
        python=first["stack"]["python"],
        versions={name: number for line in lines for name, number in line["stack"]["versions"].items()},
        processes=first["processes"],
        seconds=round(sum(line["seconds"] for line in lines), 1),
        seen={line["variant"]: Seen(Verdict(line["verdict"]), line["signature"]) for line in lines},
    )


def read(folder: Path = EVIDENCE) -> Evidence:
    """Read all evidence below a folder.

    Raises:
        EvidenceError: a file that is damaged.
    """
    found = (one for file in sorted(folder.glob("*/RPR-*.toml")) for one in _file(file))
    return {one.unit: one for one in found}


def _file(file: Path) -> Iterator[Measurement]:
    try:
        devices = tomllib.loads(file.read_text(encoding="utf-8"))
        for device, strategies in devices.items():
            for strategy, table in strategies.items():
                seen = {
                    name: Seen(Verdict(one["verdict"]), one.get("signature")) for name, one in table.pop("seen").items()
                }
                yield Measurement(Unit(file.parent.name, file.stem, device, strategy), seen=seen, **table)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EvidenceError(file, f"is no evidence ({error})") from error


def write(measurements: Iterable[Measurement], folder: Path = EVIDENCE) -> None:
    """Put measurements into their files, in the place of earlier ones of the same units.

    Raises:
        EvidenceError: a file that is there is damaged.
        EvidenceNotKeptError: the folder cannot be written.
    """
    by_file = sorted(measurements, key=lambda one: one.unit)
    for (stack, repro), group in groupby(by_file, key=lambda one: (one.unit.stack, one.unit.repro)):
        file = folder / stack / f"{repro}.toml"
        known = {one.unit: one for one in _file(file)} if file.exists() else {}
        known |= {one.unit: one for one in group}
        tables = "".join(f"\n{_table(known[unit])}" for unit in sorted(known))
        whole = file.with_suffix(".tmp")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(_HEAD.format(repro=repro, stack=stack) + tables, encoding="utf-8")
            whole.replace(file)
        except OSError as error:
            raise EvidenceNotKeptError(folder, error) from error


def _table(one: Measurement) -> str:
    versions = ", ".join(f"{name} = {_text(number)}" for name, number in sorted(one.versions.items()))
    place = f"{one.unit.device}.{one.unit.strategy}"
    lines = [
        f"[{place}]",
        f"inputs = {_text(one.inputs)}",
        f"date = {one.date}",
        f"launch = {_text(one.launch)}",
        f"platform = {_text(one.platform)}",
        f"python = {_text(one.python)}",
        f"versions = {{ {versions} }}",
        f"processes = {one.processes}",
        f"seconds = {one.seconds}",
        f"[{place}.seen]",
        *(f"{name} = {{ {_seen(seen)} }}" for name, seen in sorted(one.seen.items())),
    ]
    return "".join(f"{line}\n" for line in lines)


def _seen(seen: Seen) -> str:
    signature = "" if seen.signature is None else f", signature = {_text(seen.signature)}"
    return f"verdict = {_text(seen.verdict)}{signature}"


def _text(value: str) -> str:
    """Return a TOML string on one line: JSON's escapes are among TOML's, which wants one more."""
    clean = value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")
