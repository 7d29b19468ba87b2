"""The catalogue by hand and by `repros run`, on one or more cores, and plans of the schedule for other machines.

    python -m tools.bench.scale [--every N] [--by-hand N] [--rounds N] [--stack NAME] [--keep]

`--every 1` takes the whole catalogue. `--keep` puts the figures into `kept.json`; `python -m tools.bench.scale_table`
writes them into `docs/scale.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from repros.engine import record
from repros.engine.catalogue import load
from repros.engine.environment import Targets, prepare
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.engine.record import RecordLine
from repros.model import Cell, Device
from repros.text.wording import count
from tools.bench import machine
from tools.bench.kept import keep
from tools.bench.measure import by_hand
from tools.bench.planned import OTHERS, Other, Plans

EVERY, BY_HAND = 8, 24
"""Defaults: every eighth failure runs, and this number of cells by hand."""
JOBS = (2, 4, 8)
"""Cells side by side, on all cores."""
DEVICES = (Device.CPU, Device.SIM)
_ROOT = Path(__file__).parents[2]
_DISAGREES = 1
"""The exit status of a run in which a cell disagrees: its seconds count all the same."""


class TimedRun(NamedTuple):
    """One `repros run`."""

    seconds: float
    runner: float
    """Processor seconds of the runner, one process; a sample every half second."""
    lines: Sequence[RecordLine]


def core_counts(cores: int) -> list[int]:
    """Return 1, 2, 4, ... and the number of cores itself."""
    return [*(2**power for power in range((cores - 1).bit_length())), cores]


def draw(cells: Sequence[Cell], wanted: int) -> dict[str, tuple[int, list[Cell]]]:
    """Draw the cells that are run by hand, by rule: from each kind its share, at even distances in the catalogue.

    Args:
        cells: all of them.
        wanted: how many to draw; from each kind at least two if it has two, or how far they differ is not known.

    Returns:
        For each kind, which is a device and a number of processes, how many cells it has, and which are drawn.
    """
    kinds: dict[str, list[Cell]] = {}
    for cell in cells:
        kinds.setdefault(f"{cell.device}, {count(cell.processes, 'process')}", []).append(cell)
    drawn = {}
    for kind, each in kinds.items():
        number = min(len(each), max(2, round(wanted * len(each) / len(cells))))
        drawn[kind] = len(each), [each[place * len(each) // number] for place in range(number)]
    return drawn


def estimate(kinds: Mapping[str, tuple[int, Sequence[float]]]) -> tuple[float, float]:
    """Return the seconds of all cells and the standard error, from those of the drawn cells of each kind.

    A cell that was not drawn counts as the mean of its kind.
    """
    total = sum(size * statistics.mean(taken) for size, taken in kinds.values())
    variance = sum(
        size * (size - len(taken)) / len(taken) * statistics.variance(taken)
        for size, taken in kinds.values()
        if len(taken) > 1
    )
    return total, variance**0.5


@contextlib.contextmanager
def on_cores(cores: int) -> Iterator[None]:
    """Restrict this thread and its child processes to the first N allowed cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def run(words: Sequence[str], cores: int) -> TimedRun:
    """Run cells with `repros run` on a number of cores.

    Args:
        words: the failures, and options that select from their cells.
        cores: the number of cores.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.jsonl")
        words = [sys.executable, "-m", "repros", "run", *words, "--results", str(file), "--no-summary"]
        environ = os.environ | {"PYTHONPATH": str(_ROOT)}
        started, used = time.monotonic(), 0.0
        with on_cores(cores), Path(folder, "log").open("wb") as log:
            process = psutil.Popen(words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while (code := _poll(process)) is None:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                used = times.user + times.system
        assert code in {0, _DISAGREES}, Path(folder, "log").read_text("utf-8")
        return TimedRun(time.monotonic() - started, used, record.read_last(file))


def _poll(process: psutil.Popen) -> int | None:
    with contextlib.suppress(psutil.TimeoutExpired):
        code: int = process.wait(0.5)
        return code
    return None


def measure_scale(
    stack_name: str, every: int, drawn: int, rounds: int, devices: Sequence[Device] = DEVICES
) -> dict[str, Any]:
    """Run a part of the catalogue by hand and with `repros run`; return the figures and the plans.

    Args:
        stack_name: the stack.
        every: run every N-th failure, from the first on; 1 for the whole catalogue.
        drawn: how many cells are run by hand.
        rounds: how often each is measured; the medians count.
        devices: those of the cells.
    """
    observed, allowed = machine.Machine(), len(os.sched_getaffinity(0))
    ids = [repro.id for repro in load()][::every]
    everywhere = select(load(), Selection(tuple(ids), devices=(*devices, Device.CUDA)))
    specs = [spec for spec in everywhere if spec.device in devices]
    with prepare(specs, Targets((stack_name,)), _report_progress) as environments:
        cells = [item for item in plan(specs, environments) if isinstance(item, Cell)]
    machine.ensure_bytecode(cells[0].environment, own=True)
    hand = _measure_by_hand(cells, drawn, rounds)
    plans = Plans(stack_name)
    options = ["--stack", stack_name, *(word for device in devices for word in ("--device", device.value))]
    runs = {cores: _median_run([*ids, *options], cores, rounds) for cores in core_counts(allowed)}
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "stack": stack_name,
        "every": every,
        "repros": len(ids),
        "cells": len(cells),
        "by_hand": hand,
        "here": _here(plans, specs, runs),
        "elsewhere": _elsewhere(plans, everywhere, runs[allowed], allowed),
        "jobs": _measure_jobs(plans, specs, options, rounds, runs[allowed]),
        "longest": max(line["seconds"] or 0.0 for line in runs[allowed].lines),
        "disagreed": sum(len(record.disagreeing(one_run.lines)) for one_run in runs.values()),
        "machine": observed.describe(),
    }


def _report_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _measure_by_hand(cells: Sequence[Cell], wanted: int, rounds: int) -> dict[str, Any]:
    """Return the seconds of all cells. What is documented to hang is not run: somebody waits until its deadline."""
    waited = [cell.repro.deadline for cell in cells if cell.is_documented_hang]
    kinds: dict[str, tuple[int, list[float]]] = {}
    for kind, (size, drawn) in draw([cell for cell in cells if not cell.is_documented_hang], wanted).items():
        _report_progress(f"by hand: {len(drawn)} of {size} cells on {kind}")
        kinds[kind] = size, [statistics.median(_seconds_by_hand(cell) for _ in range(rounds)) for cell in drawn]
    total, error = estimate(kinds)
    return {
        "cells": sum(len(taken) for _, taken in kinds.values()),
        "seconds": round(total + sum(waited), 1),
        "hangs": len(waited),
        "standard_error": round(error, 1),
        "kinds": {
            kind: {"cells": size, "drawn": len(taken), "mean": round(statistics.mean(taken), 2)}
            for kind, (size, taken) in kinds.items()
        },
    }


def _seconds_by_hand(cell: Cell) -> float:
    started = time.monotonic()
    by_hand(cell)
    return time.monotonic() - started


def _median_run(words: Sequence[str], cores: int, rounds: int) -> TimedRun:
    _report_progress(f"on {count(cores, 'core')}: repros run {' '.join(words)}")
    runs = sorted((run(words, cores) for _ in range(rounds)), key=lambda each: each.seconds)
    return runs[len(runs) // 2]


def _here(plans: Plans, specs: Sequence[CellSpec], runs: Mapping[int, TimedRun]) -> list[dict[str, Any]]:
    """Return each run with its plans; no plan uses the run's own seconds."""
    first, last = min(runs), max(runs)
    rows = []
    for cores, each in runs.items():
        inventory = Other("", cores).inventory
        another = plans.timings_of(runs[first if cores == last else last].lines)
        rows.append(
            {
                "cores": cores,
                "seconds": round(each.seconds, 1),
                "runner": round(each.runner, 1),
                "from_evidence": plans.seconds(specs, plans.evidence, inventory),
                "from_run": plans.seconds(specs, another, inventory) if first != last else None,
            }
        )
    return rows


def _elsewhere(plans: Plans, specs: Sequence[CellSpec], measured: TimedRun, here: int) -> list[dict[str, Any]]:
    timings = plans.timings_of(measured.lines)
    return [
        {
            "name": other.name,
            "cores": other.cores,
            "gpus": other.gpus,
            "cells": len(plans.cells(specs, other.gpus)),
            "from_evidence": plans.seconds(specs, plans.evidence, other.inventory, gpus=other.gpus),
            "from_run": plans.seconds(specs, timings, other.inventory, gpus=other.gpus),
        }
        for other in OTHERS
        if other.gpus or other.cores > here
    ]


def _measure_jobs(
    plans: Plans, specs: Sequence[CellSpec], options: Sequence[str], rounds: int, measured: TimedRun
) -> dict[str, Any]:
    """Run the `ddp` cells of failures that do not hang, N at a time."""
    hangs = {cell.repro.id for cell in plans.cells(specs) if cell.is_documented_hang}
    specs = [spec for spec in specs if spec.strategy == "ddp" and spec.repro.id not in hangs]
    ids = list(dict.fromkeys(spec.repro.id for spec in specs))
    cores = len(os.sched_getaffinity(0))
    inventory, timings = Other("", cores).inventory, plans.timings_of(measured.lines)
    rows = []
    for jobs in JOBS:
        each = _median_run([*ids, *options, "--strategy", "ddp", "--jobs", str(jobs)], cores, rounds)
        from_evidence, from_run = (
            plans.seconds(specs, known, inventory, jobs=jobs) for known in (plans.evidence, timings)
        )
        rows.append(
            {"jobs": jobs, "seconds": round(each.seconds, 1), "from_evidence": from_evidence, "from_run": from_run}
        )
    return {"cells": len(plans.cells(specs)), "cores": cores, "rows": rows}


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.scale")
    parser.add_argument("--every", type=int, default=EVERY, help="1: the whole catalogue; 8: every eighth failure")
    parser.add_argument("--by-hand", type=int, default=BY_HAND, help="how many cells are run by hand")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--stack", default="current")
    parser.add_argument("--keep", action="store_true", help="put the figures into tools/bench/kept.json")
    asked = parser.parse_args()
    measured = {"scale": measure_scale(asked.stack, asked.every, asked.by_hand, asked.rounds)}
    print(json.dumps(measured, indent=2))
    if asked.keep:
        keep(measured)


if __name__ == "__main__":
    main()
