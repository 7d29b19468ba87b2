"""Cells for the ratios: warm from a server in long use, and by hand, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from repros.engine.catalogue import load
from repros.engine.environment import Targets, prepare
from repros.engine.plan import Selection, plan, select
from repros.model import Cell, Device
from tools.bench.measure import Bench, Sample

CELLS = (("RPR-0005", "fixed", "ddp"), ("RPR-0006", "fixed", "auto"))
"""One with two ranks and one with one, on the CPU."""
_BEFORE = 25
"""Cells before the first sample: more than the jobs after which a server moves its memory to huge pages."""


def sample_cells(rounds: int) -> Iterator[tuple[str, list[Sample], list[Sample]]]:
    """Run cells of the stack `current`, by hand and warm in turn.

    Args:
        rounds: samples of each kind.

    Yields:
        The label of a cell, its samples by hand, and as many warm ones.
    """
    ids = tuple(id_ for id_, *_ in CELLS)
    specs = select(load(), Selection(ids, devices=(Device.CPU,)))
    with (
        prepare(specs, Targets(("current",)), lambda line: click.echo(line, err=True)) as environments,
        tempfile.TemporaryDirectory() as folder,
    ):
        planned = [cell for cell in plan(specs, environments) if isinstance(cell, Cell)]
        bench = Bench(Path(folder))
        with bench.servers:
            for cell in planned:
                if (cell.repro.id, cell.variant.name, cell.strategy) in CELLS:
                    click.echo(f"sampling {cell.label}", err=True)
                    yield cell.label, *_sample(bench, cell, rounds)


def _sample(bench: Bench, cell: Cell, rounds: int) -> tuple[list[Sample], list[Sample]]:
    for _ in range(_BEFORE):
        bench.sample("warm", cell)
    pairs = [(bench.sample("by hand", cell), bench.sample("warm", cell)) for _ in range(rounds)]
    return [hand for hand, _ in pairs], [warm for _, warm in pairs]
