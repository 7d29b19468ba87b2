"""Benchmark of cells run by hand, cold and warm: `nox -s bench`, which is `python -m tools.bench`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psutil
from rich.console import Console

from repros.engine.catalogue import load
from repros.engine.environment import Targets, prepare
from repros.engine.plan import Selection, plan, select
from repros.model import Cell, Device, Environment
from repros.model.catalogue import Catalogue
from tools.bench import figures, machine, table
from tools.bench.kept import keep, read_kept
from tools.bench.measure import Bench, measure_interleaved, memory_of
from tools.bench.ratios import compare_ratios, measure_ratios
from tools.bench.scale import BY_HAND, DEVICES, EVERY, measure_scale
from tools.bench.simulated import measure_simulated
from tools.bench.startup import ROUNDS, startup_figures, time_startup
from tools.bench.watched import measure_watch

FOUNDING = ("RPR-0001", "RPR-0002", "RPR-0003", "RPR-0004", "RPR-0005")
CELLS = (("RPR-0005", "fixed", "ddp", "cpu"), ("RPR-0001", "fixed", "ddp", "sim"))
MODES = (figures.HAND, figures.COLD, figures.WARM)


@click.command()
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="Samples of each cell in each mode."
)
@click.option("--stack", default="current", show_default=True, metavar="NAME", help="Stack to run on.")
@click.option(
    "--python", type=click.Path(exists=True, path_type=Path), help="Use this interpreter instead of a stack's."
)
@click.option(
    "--catalogue",
    "all_cells",
    is_flag=True,
    help="Take the whole catalogue by hand and by repros run, not a sample: a quarter of an hour on two cores.",
)
@click.option("--no-sim", is_flag=True, help="Skip the simulated accelerator, which may have to be compiled.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(".repros/bench.json"), show_default=True)
def main(rounds: int, stack: str, python: Path | None, all_cells: bool, no_sim: bool, out: Path) -> None:
    """Measure cells, print the figures as tables, and write them as JSON."""
    observed = machine.Machine()
    catalogue = load()
    devices = (Device.CPU,) if no_sim else DEVICES
    cells = list(_plan_cells(catalogue, FOUNDING, Targets((stack,), python), devices))
    environment = cells[0].environment
    report: dict[str, Any] = {
        "schema": 1,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "environment": _describe_environment(environment, machine.ensure_bytecode(environment, own=python is None)),
    }
    with tempfile.TemporaryDirectory() as folder:
        report |= _measure_single_cells(cells, Path(folder), rounds)
    if python is None:
        report["scale"] = measure_scale(stack, 1 if all_cells else EVERY, BY_HAND, 1, devices)
    if not no_sim:
        click.echo("measuring epochs on sim and on the CPU", err=True)
        report["epochs"] = measure_simulated(environment.python, rounds)
    click.echo("measuring trainings under repros watch", err=True)
    report["watch"] = measure_watch(environment.python, rounds)
    signatures = [variant.signature for repro in catalogue for variant in repro.variants]
    report["signature_matches_per_second"] = figures.measure_matches_per_second(signatures)
    report["log_matching"] = figures.measure_log_matching()
    report["startup"] = startup_figures(time_startup(ROUNDS))
    report["ratios"] = measure_ratios(ROUNDS)
    report["machine"] = observed.describe()
    report["targets"] = figures.compare_with_targets(report)
    report["targets"] += compare_ratios(report["ratios"], read_kept().get("ratios", {}))
    keep(report, out)
    screen = Console()
    screen.print(table.report(report))
    screen.print(f"figures: {out}")


def _plan_cells(catalogue: Catalogue, ids: Sequence[str], where: Targets, devices: Sequence[Device]) -> Iterator[Cell]:
    specs = select(catalogue, Selection(tuple(ids), devices=tuple(devices)))
    with prepare(specs, where, lambda line: click.echo(line, err=True)) as environments:
        planned = plan(specs, environments)
    yield from (cell for cell in planned if isinstance(cell, Cell))


def _measure_single_cells(cells: Iterable[Cell], folder: Path, rounds: int) -> dict[str, Any]:
    """Measure two cells of two ranks each, one on the CPU and one on `sim`, and the memory of the warm servers."""
    found = []
    bench = Bench(folder)
    with bench.servers:
        for cell in cells:
            if (cell.repro.id, cell.variant.name, cell.strategy, cell.device.value) not in CELLS:
                continue
            click.echo(f"measuring {cell.label}", err=True)
            series = measure_interleaved(bench, cell, MODES, rounds)
            about = {"label": cell.label, "strategy": cell.strategy, "device": cell.device.value}
            found.append(about | figures.series_figures(series))
        servers = {
            f"{device.value}-{processes}": memory_of([psutil.Process(server.pid)])
            for (_, device, processes), server in bench.servers._servers.items()
        }
    return {"cells": found, "servers": servers}


def _describe_environment(environment: Environment, bytecode: str) -> dict[str, Any]:
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
