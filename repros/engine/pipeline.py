"""The one straight way: catalogue -> plan -> run -> judge -> record -> report."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from repros import environments
from repros.engine import record
from repros.engine.catalogue import Catalogue
from repros.engine.judge import judge, together
from repros.engine.launch import Servers, run
from repros.engine.plan import CellSpec, Selection, plan, select, stack_names
from repros.engine.probe import ProbeError, probe
from repros.errors import ReprosError
from repros.model import Cell, Device, Environment, Repro, Result, Unavailable, Verdict
from repros.stacks import stack

Say = Callable[[str], None]
"""Takes one line for a person who waits."""


JOBS = min(2, os.cpu_count() or 1)
"""How many cells are run side by side unless somebody says otherwise.

On two cores the 40 cells of RPR-0001 to RPR-0005 on `current` took 42 s one at a time, 33 s two and 30 s three at a
time; a third costs another half gigabyte, and a deadline comes nearer.
"""

KEPT = 50
"""Runs whose logs are kept; a run of nox makes one for each strategy."""


@dataclass(frozen=True)
class Where:
    """The environments to run on: stacks by name, or one interpreter of the user's own."""

    stacks: tuple[str, ...] = ()
    """Names of stacks; `home` stands for each repro's own."""
    python: Path | None = None


class Launch(StrEnum):
    """How cells are started."""

    AUTO = "auto"
    """Warm, except for strategies that the repro's header names as cold."""
    WARM = "warm"
    """Forked from a server that has imported the libraries: fast."""
    COLD = "cold"
    """`python script.py`, as a user would."""


class Observer:
    """What somebody who waits gets to know; every method does nothing unless it is overridden.

    `started` is called from the threads that run the cells, the others from the caller's own.
    """

    def say(self, line: str) -> None:
        """Take progress that concerns no cell, such as an environment being made."""

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        """Take the plan, before anything of it is run; it may raise in order to call the journey off."""

    def started(self, cell: Cell) -> None:
        """Take a cell whose run begins."""

    def unrecorded(self, result: Result, error: OSError) -> None:
        """Take a result that could not be recorded; the journey goes on."""


def run_selection(
    catalogue: Catalogue,
    selection: Selection,
    where: Where,
    out: Path,
    observer: Observer,
    *,
    jobs: int = JOBS,
    launch: Launch = Launch.AUTO,
    repeat: int = 1,
    require: Sequence[Device] = (),
) -> Iterator[Result]:
    """Run what is selected and yield each result as it comes, recorded already.

    Args:
        catalogue: the catalogue.
        selection: which part of it.
        where: which environments; they are made if they are not there.
        out: the results file (JSON Lines) to append to; logs go to a new folder in `runs/` beside it.
        observer: is told of everything that is not a result.
        jobs: how many cells to run side by side.
        launch: how to start them.
        repeat: how often to run each; one result says how often they agree.
        require: tiers that every environment must offer.

    Raises:
        ReprosError: a selection, a required tier or an environment that is not there.
    """
    yield from run_specs(
        select(catalogue, selection), where, out, observer, jobs=jobs, launch=launch, repeat=repeat, require=require
    )


def run_specs(
    specs: Sequence[CellSpec],
    where: Where,
    out: Path,
    observer: Observer,
    *,
    jobs: int = JOBS,
    launch: Launch = Launch.AUTO,
    repeat: int = 1,
    require: Sequence[Device] = (),
) -> Iterator[Result]:
    """Run these specs, which :func:`run_selection` selects, and yield each result as it comes, recorded already."""
    cells = plan(specs, prepare(specs, where, observer.say))
    _insist(cells, require)
    observer.planned(cells)
    runs = new_runs_folder(out)
    for result in run_all(cells, runs, jobs=jobs, launch=launch, repeat=repeat, started=observer.started):
        try:
            record.append(out, result)
        except OSError as error:
            observer.unrecorded(result, error)
        yield result


class TierMissingError(ReprosError):
    """A tier that was required and that an environment does not offer."""


def _insist(cells: Sequence[Cell | Unavailable], require: Sequence[Device]) -> None:
    """Refuse to go without a required tier: a run that leaves out what it was meant to run would look well."""
    for item in cells:
        if isinstance(item, Unavailable) and item.cell.device in require:
            environment = item.cell.environment
            why = environment.broken or environment.absent.get(item.cell.device)
            if why:
                raise TierMissingError(f"{item.cell.device} is required, but {why} ({environment.name}).")


def prepare(specs: Sequence[CellSpec], where: Where, say: Say) -> Callable[[Repro], Sequence[Environment]]:
    """Make and probe every environment that the specs need; return which ones a repro is to run in.

    Raises:
        UnknownNameError: a stack that is not among the known ones.
        ProbeError: the user's own interpreter does not answer.
    """
    sim = any(spec.device is Device.SIM for spec in specs)
    if where.python is not None:
        own = _probed(where.python, None, sim=sim, say=say)
        return lambda _: [own]
    names = dict.fromkeys(name for spec in specs for name in stack_names(spec.repro, where.stacks))
    made = {name: _made(name, sim=sim, say=say) for name in names}
    return lambda repro: [made[name] for name in stack_names(repro, where.stacks)]


def _made(name: str, *, sim: bool, say: Say) -> Environment:
    """Make and probe a stack's environment; one that cannot be made is a value: its cells are `unavailable`."""
    wanted = stack(name)
    try:
        python = environments.ensure(wanted, say)
        return _probed(python, name, sim=sim, say=say)
    except (environments.EnvironmentFailedError, ProbeError) as error:
        return Environment(name, Path(), wanted.python, {}, broken=str(error))


def _probed(python: Path, name: str | None, *, sim: bool, say: Say) -> Environment:
    """Probe an environment; a compiler that works for a minute is announced."""
    if sim:
        say(f"looking at {name or python} (the first time, its simulated accelerator is compiled: a minute or so)")
    return probe(python, name, sim=sim)


def run_all(
    cells: Sequence[Cell | Unavailable],
    runs: Path,
    *,
    jobs: int = JOBS,
    launch: Launch = Launch.AUTO,
    repeat: int = 1,
    started: Callable[[Cell], None] | None = None,
) -> Iterator[Result]:
    """Run and judge, `jobs` cells side by side; yield each as it is done.

    Whatever ends the iteration early (Ctrl-C above all) ends the running cells too; no further one is started.
    """
    stop = threading.Event()

    def next_one(item: Cell | Unavailable) -> Result:
        if started is not None and isinstance(item, Cell):
            started(item)
        return one(item, runs, stop, servers if is_warm(item, launch) else None, repeat)

    with Servers(runs / "servers") as servers, ThreadPoolExecutor(max_workers=jobs) as pool:
        pending = [pool.submit(next_one, item) for item in cells]
        yielded: set[Future[Result]] = set()
        try:
            # One worker is done in the order of the plan anyhow, and then so is the file.
            for future in pending if jobs == 1 else as_completed(pending):
                yield future.result()
                yielded.add(future)
        except KeyboardInterrupt:
            # What was complete by then is not lost; it may have waited behind another result.
            yield from (future.result() for future in pending if future.done() and future not in yielded)
            raise
        finally:
            stop.set()
            # Before the pool, which waits for the cells: one may be waiting for a server's imports.
            servers.close()
            pool.shutdown(cancel_futures=True)


def is_warm(item: Cell | Unavailable, launch: Launch) -> bool:
    """Whether a cell is to be launched through a warm server."""
    cell = item.cell if isinstance(item, Unavailable) else item
    return launch is Launch.WARM or (launch is Launch.AUTO and cell.strategy not in cell.repro.cold)


def one(
    item: Cell | Unavailable,
    runs: Path,
    stop: threading.Event | None = None,
    servers: Servers | None = None,
    repeat: int = 1,
) -> Result:
    """Run and judge one cell, several times if need be; what is not to be had is a result too."""
    if isinstance(item, Unavailable):
        return Result(item.cell, Verdict.UNAVAILABLE, item.reason)
    folder = runs / folder_name(item)
    if repeat == 1:
        return _judged(item, folder, stop, servers)
    results = []
    for number in range(1, repeat + 1):
        results.append(_judged(item, folder / f"{number:03}", stop, servers))
        if stop is not None and stop.is_set():
            break
    return together(results)


def _judged(cell: Cell, folder: Path, stop: threading.Event | None, servers: Servers | None) -> Result:
    """Run and judge one cell once; a fault of our own costs this cell, not the rest of the run."""
    try:
        return judge(cell, run(cell, folder, stop, servers))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cells go on and this one says so
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.log").write_text(traceback.format_exc(), encoding="utf-8")
        reason = f"the engine failed with {type(error).__name__}: {error} (see {folder / 'engine.log'})"
        return Result(cell, Verdict.INFRA, reason)


def folder_name(cell: Cell) -> str:
    """Return a name for the cell's folder that any file system takes."""
    return re.sub(r"[^\w.-]+", "-", cell.label).strip("-")


def new_runs_folder(out: Path) -> Path:
    """Return a folder for this run's logs that does not exist yet, beside the results file; the oldest runs' go."""
    runs = out.parent / "runs"
    with contextlib.suppress(OSError):
        for old in sorted(runs.iterdir(), reverse=True)[KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
    return runs / datetime.now().astimezone().strftime("%Y%m%d-%H%M%S-%f")
