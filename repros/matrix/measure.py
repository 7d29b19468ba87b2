"""The measurement run: for each stack, make the environment, run the cells, store the evidence, drop it again."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from repros import environments
from repros.engine import record
from repros.engine.cells import JOBS
from repros.engine.environment import Where
from repros.engine.pipeline import Observer, RunOptions, run_specs
from repros.environments.use import drop_unless_held
from repros.evidence import Measurement, Unit
from repros.matrix.worklist import Worklist, WorklistEntry, pending
from repros.model import Result, Stack, Verdict

_MARKER = ".repros-made-for-the-matrix"

Store = Callable[[Measurement], None]
"""Takes a unit's measurement as soon as it is complete."""


class _UnitCollector:
    """Collects record lines until a unit is complete."""

    def __init__(self, entries: Iterable[WorklistEntry]) -> None:
        self._entries = {entry.unit: entry for entry in entries}
        self._lines: dict[Unit, list[record.RecordLine]] = {}

    def add(self, result: Result) -> Measurement | None:
        """Add a result; return the unit's measurement when this was its last cell.

        A cell that could not be judged leaves the whole unit unmeasured, so that it runs again. A cell that turns out
        to be unavailable is left out of the measurement.
        """
        unit = Unit.of_cell(result.cell)
        entry = self._entries[unit]
        lines = self._lines.setdefault(unit, [])
        lines.append(record.line(result))
        if len(lines) < len(entry.specs):
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
    jobs: int = JOBS,
    keep_environments: bool = False,
) -> Iterator[Result]:
    """Run the cells without fresh evidence and yield each result as it comes.

    Args:
        worklist: The units that can be measured.
        results: Results file (JSON Lines) to append to.
        observer: Receives everything that is not a result.
        store: Receives each complete unit.
        include_fresh: Whether to run the units with fresh evidence, too.
        jobs: Number of cells to run side by side.
        keep_environments: Whether to keep the environments made by this run for the next one.
    """
    for stack in worklist.stacks:
        entries = pending(worklist.on_stack(stack), include_fresh=include_fresh)
        if not entries:
            continue
        collector = _UnitCollector(entries)
        specs = [spec for entry in entries for spec in entry.specs]
        where = Where((stack.name,), known={stack.name: stack})
        with _drop_environment_after(stack, observer, keep=keep_environments):
            for result in run_specs(specs, where, results, observer, RunOptions(jobs=jobs)):
                yield result
                if measurement := collector.add(result):
                    store(measurement)


@contextlib.contextmanager
def _drop_environment_after(stack: Stack, observer: Observer, *, keep: bool) -> Iterator[None]:
    """Mark an environment that this run makes, and drop it at the end unless it is to be kept.

    An environment kept by an earlier run still has the marker; the next run without --keep drops it.
    """
    marker = environments.place(stack) / _MARKER
    was_ready = environments.ready(stack)
    try:
        yield
    finally:
        if environments.ready(stack) and not was_ready:
            marker.touch()
        if marker.exists() and not keep:
            if drop_unless_held(stack):
                observer.say(
                    f"dropped the environment of stack {stack.name}; uv keeps its wheels until 'uv cache clean'"
                )
            else:
                observer.say(f"kept the environment of stack {stack.name}, which another process uses")
