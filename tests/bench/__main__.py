"""Measures how long cells take by hand, cold and warm: `nox -s bench`, which is `python -m tests.bench`."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psutil

from repros.cli.output import console
from repros.journey import Launch, Where, is_warm, prepare, run_all
from repros.model import Cell, Environment
from repros.plan import Selection, plan, select
from repros.shelf import Shelf, load
from tests.bench import figures, machine, table
from tests.bench.measure import Bench, held, interleaved

FOUNDING = ("RPR-0001", "RPR-0002", "RPR-0003", "RPR-0004", "RPR-0005")
CELLS = (("RPR-0005", "fixed", "ddp", "cpu"), ("RPR-0001", "fixed", "ddp", "sim"))
WAYS = (figures.HAND, figures.COLD, figures.WARM)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Samples of each way.")
@click.option("--stack", default="current", show_default=True, metavar="NAME", help="Stack to run on.")
@click.option("--python", type=click.Path(exists=True, path_type=Path), help="An interpreter in the stack's place.")
@click.option("--catalogue", is_flag=True, help="Also every cell of the founding failures, each way.")
@click.option("--jobs", is_flag=True, help="Also whether warm cells side by side are faster.")
@click.option("--no-sim", is_flag=True, help="Leave the simulated accelerator out, which may have to be compiled.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(".repros/bench.json"), show_default=True)
def main(rounds: int, stack: str, python: Path | None, catalogue: bool, jobs: bool, no_sim: bool, out: Path) -> None:
    """Measure, print tables, write JSON."""
    watched = machine.Machine()
    shelf = load()
    devices = () if not no_sim else ("cpu",)
    every = list(_cells(shelf, FOUNDING, Where((stack,), python), devices))
    environment = every[0].environment
    bytecode = machine.bytecode(environment, own=python is None)
    report: dict[str, Any] = {
        "schema": 1,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "environment": _environment(environment, bytecode),
        "cells": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        with bench.servers:
            for cell in _chosen(every):
                click.echo(f"measuring {cell.label}", err=True)
                series = interleaved(bench, cell, WAYS, rounds)
                about = {"label": cell.label, "strategy": cell.strategy, "device": cell.device.value}
                report["cells"].append(about | figures.of_series(series))
            report["servers"] = {
                f"{device.value}-{processes}": held([psutil.Process(server.pid)])
                for (_, device, processes), server in bench.servers._servers.items()
            }
        if catalogue:
            report["catalogue"] = _catalogue(every, Path(folder))
        if jobs:
            report["jobs"] = _jobs(every, Path(folder), rounds)
    signatures = [variant.signature for repro in shelf for variant in repro.variants if variant.signature]
    report["signature_matches_per_second"] = figures.matches_per_second(signatures)
    report["machine"] = watched.told()
    report["targets"] = figures.targets(report)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")
    screen = console()
    screen.print(table.report(report))
    screen.print(f"figures: {out}")


def _cells(shelf: Shelf, ids: Sequence[str], where: Where, devices: Sequence[str]) -> Iterator[Cell]:
    wishes = [wish for wish in select(shelf, Selection(tuple(ids))) if not devices or wish.device in devices]
    planned = plan(wishes, prepare(wishes, where, lambda line: click.echo(line, err=True)))
    yield from (cell for cell in planned if isinstance(cell, Cell))


def _chosen(every: Iterable[Cell]) -> Iterator[Cell]:
    """Yield the cells that are measured one by one: no GPU, two ranks, with and without an accelerator."""
    for cell in every:
        if (cell.repro.id, cell.variant.name, cell.strategy, cell.device.value) in CELLS:
            yield cell


def _catalogue(cells: Sequence[Cell], folder: Path) -> dict[str, Any]:
    """Run every cell by hand, cold, and as `repros run` would; servers start within, when a cell needs them."""
    bench = Bench(folder / "catalogue")
    sums = {figures.HAND: 0.0, "cold": 0.0, "auto": 0.0}
    with bench.servers:
        for number, cell in enumerate(cells, 1):
            click.echo(f"[{number}/{len(cells)}] {cell.label}", err=True)
            ways = {
                figures.HAND: figures.HAND,
                "cold": "cold",
                "auto": "warm" if is_warm(cell, Launch.AUTO) else "cold",
            }
            for name, way in ways.items():
                sums[name] += bench.sample(way, cell).seconds
    return {
        "repros": list(dict.fromkeys(cell.repro.id for cell in cells)),
        "cells": len(cells),
        "seconds": {name: round(seconds, 2) for name, seconds in sums.items()},
        "times_as_fast": {
            name: round(sums[figures.HAND] / seconds, 2) for name, seconds in sums.items() if name != figures.HAND
        },
    }


def _jobs(cells: Sequence[Cell], folder: Path, rounds: int) -> dict[str, Any]:
    """Run the warm cells one and two at a time, in turn; server starts included, as in every run."""
    warm = [cell for cell in cells if is_warm(cell, Launch.AUTO)]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(rounds):
        for jobs, taken in seconds.items():
            started = time.monotonic()
            for _ in run_all(warm, folder / f"jobs-{jobs}-{number}", jobs=jobs):
                pass
            taken.append(time.monotonic() - started)
    medians = {jobs: round(statistics.median(taken), 2) for jobs, taken in seconds.items()}
    return {
        "cells": len(warm),
        "rounds": rounds,
        "seconds": medians,
        "times_as_fast": round(medians[1] / medians[2], 2),
    }


def _environment(environment: Environment, bytecode: str) -> dict[str, Any]:
    shown = ("torch", "lightning", "accelerate")
    versions = ", ".join(f"{name} {environment.versions[name]}" for name in shown if name in environment.versions)
    return {
        "name": environment.name,
        "python": environment.python_version,
        "versions": versions,
        "bytecode": bytecode,
    }


if __name__ == "__main__":
    main()
