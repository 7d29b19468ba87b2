"""The options and the progress of a run, and the interface of what runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from repros.engine.environment import Targets
from repros.engine.plan import CellSpec
from repros.engine.record import NotRecordedError
from repros.engine.schedule import Timing
from repros.model import Cell, CellResult, Device, Launch, Unavailable

Timings = Callable[[Cell], Timing | None]
"""Returns how long a cell took before; None if it has never been timed."""


class Observer:
    """Receiver of progress; every method does nothing unless it is overridden.

    `started` and `report_progress` may be called from the threads that run the cells, the others only from the caller's
    thread.
    """

    def report_progress(self, line: str) -> None:
        """Receive a line of progress that is not about a cell, such as an environment being made."""

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        """Receive the plan before any cell is run; an exception cancels the run.

        If stacks are prepared while cells run, the plan is what their locks promise: a cell may still be unavailable.
        """

    def awaited(self, stacks: Sequence[str]) -> None:
        """Receive the names of the stacks that are not prepared yet, whenever they change."""

    def started(self, cell: Cell) -> None:
        """Receive a cell that starts."""

    def unrecorded(self, error: NotRecordedError) -> None:
        """Receive that a result could not be written to the results file; the run goes on."""


class Engine(Protocol):
    """Runs planned cells: on this machine (:data:`repros.engine.local.HERE`), or on the nodes of a cluster."""

    @property
    def gpus(self) -> int | None:
        """The most GPUs that a cell can have; None: those of this machine."""

    def run(
        self, specs: Sequence[CellSpec], targets: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Plan cell specs, report the plan to the observer, and yield each result as soon as it is known.

        :func:`repros.engine.pipeline.run_specs` explains the arguments. Nothing is written to `out`; the logs go to a
        new folder next to it.
        """


@dataclass(frozen=True)
class RunOptions:
    """How to run cells."""

    jobs: int | None = None
    """Number of cells that run at once; None: as many as the machine has cores for. With 1, cells run and results come
    in the order of the plan."""
    launch: Launch | None = None
    """How they are started; None: warm, but cold for the strategies that the repro lists as cold."""
    repeat: int = 1
    """Number of runs of each; one result then counts how many runs agree."""
    require: tuple[Device, ...] = ()
    """Devices that every environment must have."""
    timings: Timings = lambda _: None
    """Durations of cells in earlier runs; the longest start first."""
    share_gpus: bool = False
    """Whether several cells may run on one GPU at once."""
    keep_environments: bool | None = None
    """Whether the environments that the run makes stay until a run with False; None: they stay for good."""
    engine: Engine | None = None
    """Where the cells run; None: on this machine."""


DEFAULT_OPTIONS = RunOptions()
IGNORE_PROGRESS = Observer()
