"""Taking a recording into the checkout: cells as evidence, the rest as records that the tests compare with."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from repros.engine import evidence, record
from repros.engine.catalogue import load
from repros.engine.digest import inputs
from repros.engine.digest.sources import sha256
from repros.model import Device, Repro, Verdict
from repros.simulated_gpus.tools.gpu import files

OPERATORS = "operators.jsonl.gz"

ROOT = Path(__file__).parents[3]
"""The checkout."""
RECORDS = Path("tools/measure/gpu/observed")
"""The records of GPUs, one folder each, in the checkout."""
TABLES = Path("repros/simulated_gpus/tools/placement/observed")
"""The records of the error table, in the checkout."""
EVIDENCE = Path("repros/evidence/gpus")
"""The evidence of GPUs, one folder each, in the checkout."""

_NO_GPU = re.compile(r"simulated|stub", re.IGNORECASE)
_NOT_MEASURED = (Verdict.UNAVAILABLE, Verdict.INFRA)
_KEPT = ("about.json", "generators.json", "memory.json", "surface.json", OPERATORS)


def take(folder: Path, root: Path = ROOT) -> int:
    """Put a recording's files in their places and print where; return 0.

    Raises:
        files.RefusedError: the folder holds no recording, or one of a device that is not a GPU.
    """
    about = _about(folder)
    name = slug(about)
    for file in _KEPT:
        if (folder / file).exists():
            _copy(folder / file, root / RECORDS / name / file)
    if (folder / "placement.json").exists():
        _copy(folder / "placement.json", root / TABLES / f"{name}.json")
    if (folder / "cells.jsonl").exists():
        count = _take_cells(folder / "cells.jsonl", name, about, root / EVIDENCE)
        sys.stdout.write(f"{count} measurements -> {EVIDENCE / name}\n")
    return 0


def slug(about: dict[str, Any]) -> str:
    """Return a recording's name: `nvidia-h200-torch-2.11.0`."""
    words = re.sub(r"[^a-z0-9]+", "-", str(about["name"]).lower()).strip("-")
    return f"{words}-torch-{about['torch'].split('+')[0]}"


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = files.read(folder / "about.json")
        name = about["name"]
    except (OSError, ValueError, KeyError) as error:
        problem = f"{folder} holds no recording ({error}); expected a folder that 'record --out' wrote."
        raise files.RefusedError(problem) from error
    if _NO_GPU.search(name):
        problem = f"{folder} was recorded on {name}, which is no GPU; evidence of tier cuda comes from a GPU only."
        raise files.RefusedError(problem)
    return about


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    sys.stdout.write(f"{source.name} -> {target}\n")


def _take_cells(path: Path, name: str, about: dict[str, Any], into: Path) -> int:
    """Write the cells' evidence, one measurement for each unit; return how many there are."""

    def unit(line: record.RecordLine) -> evidence.Unit:
        return evidence.Unit(name, line["repro"], Device(line["device"]), line["strategy"])

    repros = {repro.id: repro for repro in load()}
    shown = [line for line in record.latest(record.read(path)) if Verdict(line["verdict"]) not in _NOT_MEASURED]
    day = dt.date.fromisoformat(about["date"])
    measurements = []
    for key, group in groupby(sorted(shown, key=unit), key=unit):
        if key.repro in repros:
            digest = _digest(repros[key.repro], about)
            measurements.append(evidence.Measurement.from_lines(key, digest, day, list(group)))
    evidence.write(measurements, into)
    return len(measurements)


def _digest(repro: Repro, about: dict[str, Any]) -> str:
    """Return the digest of what a GPU's measurement depends on: script, engine, Python, and all versions installed."""
    parts = [inputs.script(repro), inputs.engine(), about["python"], json.dumps(about["versions"], sort_keys=True)]
    return sha256(part.encode() for part in parts)[:16]
