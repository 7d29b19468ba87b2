"""The measurement run: for each stack, make its environment, run its cells, store the evidence, delete it."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from repros.engine import record
from repros.engine.environment import Targets
from repros.engine.evidence import Measurement, Unit
from repros.engine.local import HERE
from repros.engine.matrix.ahead import EnvironmentAhead
from repros.engine.matrix.worklist import Worklist, WorklistEntry, pending
from repros.engine.pipeline import run_specs
from repros.engine.run_options import Observer, RunOptions
from repros.model import CellResult, Verdict

_DEFAULT_OPTIONS = RunOptions(keep_environments=False)

Store = Callable[[Measurement], None]
"""Receives the measurement of a unit as soon as it is complete."""


class _UnitCollector:
    """Collects the record lines of units until they are complete."""

    def __init__(self, entries: Iterable[WorklistEntry]) -> None:
        self._entries = {entry.unit: entry for entry in entries}
        self._lines: dict[Unit, list[record.RecordLine]] = {}

    def add(self, result: CellResult) -> Measurement | None:
        """Add a result; return the measurement of its unit if this was the last cell.

        A cell that could not be judged leaves its whole unit unmeasured, so that it runs again. An unavailable cell is
        omitted from the measurement.
        """
        unit = Unit.from_cell(result.cell)
        entry = self._entries[unit]
        lines = self._lines.setdefault(unit, [])
        lines.append(record.line(result))
        if len(lines) < len(entry.cells):
            return None
        measured = [line for line in lines if line["verdict"] != Verdict.UNAVAILABLE]
        if not measured or any(line["verdict"] == Verdict.INFRA for line in measured):
            return None
        today = dt.datetime.now().astimezone().date()
        return Measurement.from_lines(unit, entry.inputs, today, measured)


def measure(
    worklist: Worklist,
    results: Path,
    observer: Observer,
    store: Store,
    *,
    include_fresh: bool = False,
    options: RunOptions = _DEFAULT_OPTIONS,
) -> Iterator[CellResult]:
    """Run the cells without fresh evidence and yield each result immediately.

    Stacks run one after another. While the cells of one run, only the environment of the next is made.

    Args:
        worklist: The units that can be measured.
        results: Results file (JSON Lines) to append to.
        observer: Receives progress and warnings.
        store: Receives each complete unit.
        include_fresh: Whether to run units with fresh evidence as well.
        options: How and where to run the cells.
    """
    work = [(stack, pending(worklist.on_stack(stack), include_fresh=include_fresh)) for stack in worklist.stacks]
    work = [(stack, entries) for stack, entries in work if entries]
    specs = {stack.name: [spec for entry in entries for spec in entry.specs] for stack, entries in work}
    keep = options.keep_environments is not False
    ahead = [EnvironmentAhead(stack, specs[stack.name], observer.report_progress, keep=keep) for stack, _ in work]
    try:
        for number, (stack, entries) in enumerate(work):
            ahead[number].wait()
            collector = _UnitCollector(entries)
            targets = Targets((stack.name,), known={stack.name: stack})
            with contextlib.closing(run_specs(specs[stack.name], targets, results, observer, options)) as judged:
                for result in judged:
                    is_here = options.engine in {None, HERE}
                    for next_environment in ahead[number + 1 : number + 2] if is_here else ():
                        next_environment.start()
                    yield result
                    if measurement := collector.add(result):
                        store(measurement)
    finally:
        for environment in ahead:
            environment.close()
