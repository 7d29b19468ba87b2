"""Measures an worklist stack by stack: make an environment, run its cells, write the evidence, drop it again."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from repros import environments
from repros.engine import record
from repros.engine.cells import JOBS
from repros.engine.environment import Where
from repros.engine.pipeline import Observer, RunOptions, run_specs
from repros.evidence.files import Measurement, measurement
from repros.evidence.unit import Unit
from repros.matrix.worklist import WorkItem, Worklist
from repros.model import Result, Stack, Verdict

_MARK = ".repros-made-for-the-matrix"

Keep = Callable[[Measurement], None]
"""Takes a unit that has been measured, as soon as it has."""


@dataclass
class _Tally:
    """The record lines of the units that are being measured."""

    items: Mapping[Unit, WorkItem]
    lines: dict[Unit, list[record.RecordLine]] = field(default_factory=dict)

    def add(self, result: Result) -> Measurement | None:
        """Take a result; return its unit's evidence when this was the last of its cells.

        A cell that could not be judged leaves its whole unit unmeasured, so that it is run again; one that turns out
        to be unavailable is left out of the evidence.
        """
        cell = result.cell
        unit = Unit(cell.environment.name, cell.repro.id, cell.device.value, cell.strategy)
        item = self.items[unit]
        lines = self.lines.setdefault(unit, [])
        lines.append(record.line(result))
        if len(lines) < len(item.specs):
            return None
        seen = [line for line in lines if line["verdict"] != Verdict.UNAVAILABLE]
        if not seen or any(line["verdict"] == Verdict.INFRA for line in seen):
            return None
        today = dt.datetime.now().astimezone().date()
        return measurement(unit, item.inputs, today, seen)


def measure(
    worklist: Worklist,
    results: Path,
    observer: Observer,
    keep: Keep,
    *,
    everything: bool = False,
    jobs: int = JOBS,
    leave: bool = False,
) -> Iterator[Result]:
    """Run what has no fresh evidence and yield each result as it comes.

    Args:
        worklist: what there is to measure.
        results: file for the results (JSON Lines), appended to.
        observer: is told of everything that is not a result.
        keep: takes each unit that is complete.
        everything: whether to run what has fresh evidence too.
        jobs: how many cells to run side by side.
        leave: whether to leave environments that were made for this to the next campaign.
    """
    for stack in worklist.stacks:
        items = {item.unit: item for item in worklist.of(stack) if everything or not item.fresh}
        if not items:
            continue
        tally = _Tally(items)
        specs = [spec for item in items.values() for spec in item.specs]
        with _lent(stack, observer, leave=leave):
            for result in run_specs(specs, Where((stack.name,)), results, observer, RunOptions(jobs=jobs)):
                yield result
                if whole := tally.add(result):
                    keep(whole)


@contextlib.contextmanager
def _lent(stack: Stack, observer: Observer, *, leave: bool) -> Iterator[None]:
    """Mark an environment that was made for this, and drop it in the end unless it is to be left.

    One that was left by an earlier campaign matches the mark still, and goes with the first that does not leave it.
    """
    mark = environments.place(stack) / _MARK
    there_before = environments.ready(stack)
    try:
        yield
    finally:
        if environments.ready(stack) and not there_before:
            mark.touch()
        if mark.exists() and not leave and environments.drop(stack):
            observer.say(f"dropped the environment of stack {stack.name}; uv keeps its wheels until 'uv cache clean'")
