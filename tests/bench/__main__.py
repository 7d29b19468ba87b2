"""Measures how long cells take by hand, cold and warm: `nox -s bench`, which is `python -m tests.bench`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psutil

from repros.cli.output import console
from repros.engine.catalogue import Catalogue, load
from repros.engine.cells import is_warm, run_cells
from repros.engine.environment import Where, prepare
from repros.engine.plan import Selection, plan, select
from repros.model import Category, Cell, Environment
from tests.bench import figures, machine, table
from tests.bench.measure import Bench, epochs, held, interleaved

FOUNDING = ("RPR-0001", "RPR-0002", "RPR-0003", "RPR-0004", "RPR-0005")
CELLS = (("RPR-0005", "fixed", "ddp", "cpu"), ("RPR-0001", "fixed", "ddp", "sim"))
SIDE_BY_SIDE = (1, 2, 3)
WAYS = (figures.HAND, figures.COLD, figures.WARM)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Samples of each way.")
@click.option("--stack", default="current", show_default=True, metavar="NAME", help="Stack to run on.")
@click.option("--python", type=click.Path(exists=True, path_type=Path), help="An interpreter in the stack's place.")
@click.option(
    "--catalogue", "all_cells", is_flag=True, help="Also all cells of the founding failures: by hand, cold, and run."
)
@click.option("--no-sim", is_flag=True, help="Leave the simulated accelerator out, which may have to be compiled.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(".repros/bench.json"), show_default=True)
def main(rounds: int, stack: str, python: Path | None, all_cells: bool, no_sim: bool, out: Path) -> None:
    """Measure, print tables, write JSON."""
    watched = machine.Machine()
    catalogue = load()
    devices = () if not no_sim else ("cpu",)
    every = list(_cells(catalogue, FOUNDING, Where((stack,), python), devices))
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
        if all_cells:
            report["catalogue"] = _catalogue(every, Path(folder))
    if not no_sim:
        click.echo("measuring epochs on sim and on the CPU", err=True)
        report["epochs"] = figures.of_epochs(epochs(environment.python, rounds))
    signatures = [variant.signature for repro in catalogue for variant in repro.variants]
    report["signature_matches_per_second"] = figures.matches_per_second(signatures)
    report["log_matching"] = figures.log_matching()
    report["machine"] = watched.told()
    report["targets"] = figures.targets(report)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")
    screen = console()
    screen.print(table.report(report))
    screen.print(f"figures: {out}")


def _cells(catalogue: Catalogue, ids: Sequence[str], where: Where, devices: Sequence[str]) -> Iterator[Cell]:
    specs = [spec for spec in select(catalogue, Selection(tuple(ids))) if not devices or spec.device in devices]
    planned = plan(specs, prepare(specs, where, lambda line: click.echo(line, err=True)))
    yield from (cell for cell in planned if isinstance(cell, Cell))


def _chosen(every: Iterable[Cell]) -> Iterator[Cell]:
    """Yield the cells that are measured one by one: no GPU, two ranks, with and without an accelerator."""
    for cell in every:
        if (cell.repro.id, cell.variant.name, cell.strategy, cell.device.value) in CELLS:
            yield cell


def _catalogue(cells: Sequence[Cell], folder: Path) -> dict[str, Any]:
    """Run every cell by hand and cold, one after another; then all of them as `repros run` does.

    That is warm where the launcher is not part of the failure, with the servers' starts, so many cells side by side.
    """
    bench = Bench(folder / "by-one")
    seconds: dict[str, float] = {figures.HAND: 0.0, figures.COLD: 0.0}
    for number, cell in enumerate(cells, 1):
        click.echo(f"[{number}/{len(cells)}] {cell.label}", err=True)
        for way in seconds:
            seconds[way] += bench.sample(way, cell).seconds
    for jobs in SIDE_BY_SIDE:
        click.echo(f"running them with --jobs {jobs}", err=True)
        started = time.monotonic()
        wrong = [
            result.reason
            for result in run_cells(cells, folder / f"jobs-{jobs}", jobs=jobs)
            if result.verdict.category is not Category.AGREES
        ]
        assert not wrong, wrong
        seconds[figures.run_with(jobs)] = time.monotonic() - started
    return {
        "repros": list(dict.fromkeys(cell.repro.id for cell in cells)),
        "cells": len(cells),
        "cold": sum(not is_warm(cell) for cell in cells),
        "seconds": {way: round(taken, 2) for way, taken in seconds.items()},
        "times_as_fast": {
            way: round(seconds[figures.HAND] / taken, 2) for way, taken in seconds.items() if way != figures.HAND
        },
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
