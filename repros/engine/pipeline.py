"""The pipeline: catalogue -> plan -> run -> judge -> record -> report.

:func:`run_selection` is all of it but the report. Each step takes and returns plain frozen values of
:mod:`repros.model`:

    select(catalogue, selection)            -> cell specs           repros.engine.plan
    prepare(specs, where)                   -> held environments    repros.engine.environment
    plan(specs, environments)               -> cells                repros.engine.plan
    run_cells(cells): run, then judge       -> results              repros.engine.local, .cells, .launch, .judge
    append(file, result)                    -> a record line        repros.engine.record
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from repros.engine import record
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import drop_afterwards, find_loss
from repros.engine.local import Timings, run_cells
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.model import Cell, CellResult, Device, Launch, Stack, Unavailable, Verdict
from repros.model.catalogue import Catalogue


class Engine(Protocol):
    """What runs planned cells: this machine (:data:`HERE`), or the nodes of a cluster."""

    @property
    def gpus(self) -> int | None:
        """The most GPUs that a cell can have; None: those of this machine."""

    def run(
        self, specs: Sequence[CellSpec], where: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Plan cell specs, tell the observer, and yield each result as soon as it is known.

        :func:`run_selection` explains the arguments. Nothing is written to `out`; the logs go beside it.
        """


class _Here:
    """The engine on this machine."""

    gpus = None

    def run(
        self, specs: Sequence[CellSpec], where: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Make the environments, and run the cells in them; :class:`Engine` explains the arguments."""
        keep = options.keep_environments
        stacks = [] if keep is None else {s.name: s for e in specs for s in where.stacks_of(e.repro)}
        with contextlib.ExitStack() as held:
            for name in stacks:
                held.enter_context(drop_afterwards(where.known[name], observer.report_progress, keep=keep is True))
            environments = held.enter_context(prepare(specs, where, observer.report_progress, options.require))
            cells = plan(specs, environments, options.require)
            observer.planned(cells)
            results = run_cells(
                cells,
                new_log_folder(out),
                jobs=options.jobs,
                launch=options.launch,
                repeat=options.repeat,
                timings=options.timings,
                share_gpus=options.share_gpus,
                started=observer.started,
                report_progress=observer.report_progress,
            )
            yield from (without_loss(result, where.known) for result in results)


HERE = _Here()
"""The engine on this machine."""


@dataclass(frozen=True)
class RunOptions:
    """How to run cells."""

    jobs: int | None = None
    """How many run side by side; None: as many as the machine has cores for."""
    launch: Launch | None = None
    """How they are started; None: warm, but cold for the strategies that the repro lists as cold."""
    repeat: int = 1
    """How often each is run; one result then counts how many runs agree."""
    require: tuple[Device, ...] = ()
    """Devices that every environment must have."""
    timings: Timings = lambda _: None
    """From earlier runs: how long a cell takes. The longest start first."""
    share_gpus: bool = False
    """Whether cells may run side by side on one GPU."""
    keep_environments: bool | None = None
    """Whether the environments that the run makes stay until a run with False; None: they stay for good."""
    engine: Engine = HERE
    """Where the cells run."""


class Observer:
    """Receiver of progress; every method does nothing unless it is overridden.

    `started` and `say` may be called from the threads that run the cells, the others only from the caller's thread.
    """

    def report_progress(self, line: str) -> None:
        """Receive a line of progress that is not about a cell, such as an environment being made."""

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        """Receive the plan before any cell is run; an exception cancels the run."""

    def started(self, cell: Cell) -> None:
        """Receive a cell that starts."""

    def unrecorded(self, error: record.NotRecordedError) -> None:
        """Receive that a result could not be written to the results file; the run goes on."""


def run_selection(
    catalogue: Catalogue,
    selection: Selection,
    where: Targets,
    out: Path,
    observer: Observer,
    options: RunOptions = RunOptions(),
) -> Iterator[CellResult]:
    """Run a selection of the catalogue and yield each result as soon as it is recorded.

    Args:
        catalogue: the repros.
        selection: which cells of them.
        where: the environments; missing ones are made.
        out: the results file (JSON Lines) to append to; logs go to a new folder of `.repros/runs`.
        observer: receives everything that is not a result.
        options: how to run the cells.

    Raises:
        ReprosError: the selection, a required device or an environment does not exist.
    """
    yield from run_specs(select(catalogue, selection), where, out, observer, options)


def run_specs(
    specs: Sequence[CellSpec],
    where: Targets,
    out: Path,
    observer: Observer,
    options: RunOptions = RunOptions(),
) -> Generator[CellResult, None, None]:
    """Run cell specs and yield each result as soon as it is recorded; :func:`run_selection` explains the arguments."""
    with contextlib.closing(options.engine.run(specs, where, out, observer, options)) as results:
        for result in results:
            try:
                record.append(out, result)
            except record.NotRecordedError as error:
                observer.unrecorded(error)
            yield result


def without_loss(result: CellResult, stacks: Mapping[str, Stack]) -> CellResult:
    """Return the result, or that nothing can be judged if a stack's environment lost files while its cell ran."""
    name = result.cell.environment.stack
    if name is None or result.verdict not in {Verdict.DIFFERENT, Verdict.FLAKY}:
        return result
    loss = find_loss(stacks[name], result.cell.environment.python)
    if loss is None:
        return result
    reason = f"the environment of stack {name} is no longer what it was when the run began: {loss}"
    return replace(result, verdict=Verdict.INFRA, reason=reason)
