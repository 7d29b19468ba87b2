"""Cells: a cell as a job, run and judged."""

from __future__ import annotations

import re
import threading
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from repros.engine.environments.use import find_loss
from repros.engine.judge import combine, judge
from repros.engine.launch import Job, Servers, run
from repros.engine.launch.environ import accelerator, for_device
from repros.engine.launch.warm import modules_of
from repros.model import Cell, CellResult, Device, Launch, Observation, Stack, Unavailable, Verdict

_PORT_TAKEN = re.compile(r"Address already in use|EADDRINUSE")


def job_of(cell: Cell) -> Job:
    """Return the job that runs a cell: `python script.py VARIANT STRATEGY DEVICE`."""
    script = cell.repro.path.resolve()
    environ = for_device(cell.device, cell.processes, on_stack=cell.environment.stack is not None)
    environ.pop("TMPDIR", None)  # each run has a folder of its own for temporary files
    return Job(
        python=cell.environment.python,
        arguments=(str(script), cell.variant.name, cell.strategy, accelerator(cell.device)),
        script=script,
        environ=environ,
        deadline=cell.repro.deadline,
        ranks=cell.processes,
        device=cell.device,
        gpus=cell.gpus,
        expects_hang=expects_deadlock(cell),
        modules=modules_of((requirement.name for requirement in cell.repro.dependencies), cell.environment),
        name=cell.environment.name,
    )


def expects_deadlock(cell: Cell) -> bool:
    """Return whether a cell is documented to hang in several ranks, on a device that hides no work."""
    return cell.is_documented_hang and cell.processes > 1 and cell.device is not Device.CUDA


def is_warm(item: Cell | Unavailable, launch: Launch | None = None) -> bool:
    """Return whether a cell is launched through a warm server.

    Args:
        item: the cell.
        launch: the user's choice; None: warm, but cold for the strategies that the repro lists as cold.
    """
    cell = item.cell if isinstance(item, Unavailable) else item
    return launch is Launch.WARM or (launch is None and cell.strategy not in cell.repro.cold)


def observe(
    cell: Cell, folder: Path, stop: threading.Event | None = None, servers: Servers | None = None
) -> Observation:
    """Run a cell without judging it; :func:`repros.engine.launch.run` explains the arguments."""
    return run(job_of(cell), folder, stop, servers)


def run_cell(
    item: Cell | Unavailable,
    runs: Path,
    stop: threading.Event | None = None,
    servers: Servers | None = None,
    repeat: int = 1,
) -> CellResult:
    """Run one cell `repeat` times and judge it; an unavailable cell gives a result too."""
    if isinstance(item, Unavailable):
        return CellResult(item.cell, Verdict.UNAVAILABLE, item.reason)
    folder = runs / folder_name(item)
    if repeat == 1:
        return _run_once(item, folder, stop, servers)
    results = []
    for number in range(1, repeat + 1):
        results.append(_run_once(item, folder / f"{number:03}", stop, servers))
        if stop is not None and stop.is_set():
            break
    return combine(results)


def run_cell_with_port(
    item: Cell | Unavailable,
    runs: Path,
    stop: threading.Event | None = None,
    servers: Servers | None = None,
    repeat: int = 1,
) -> CellResult:
    """Run a cell as :func:`run_cell` does, and once more, below the folder `again`, if its port was taken.

    The port of the rendezvous is chosen at the start of the cell, and rank 0 listens on it seconds later. Until then
    another process may take it, which is no evidence about the documented failure. If the second run loses its port,
    too, the verdict stays `infra`.
    """
    result = run_cell(item, runs, stop, servers, repeat)
    is_stopped = stop is not None and stop.is_set()
    if result.verdict is not Verdict.INFRA or not _PORT_TAKEN.search(result.reason) or is_stopped:
        return result
    return run_cell(item, runs / "again", stop, servers, repeat)


def _run_once(cell: Cell, folder: Path, stop: threading.Event | None, servers: Servers | None) -> CellResult:
    """Run and judge a cell once; an error of the engine itself costs this cell, not the rest of the run."""
    try:
        return judge(cell, observe(cell, folder, stop, servers))
    except Exception as error:  # noqa: BLE001 - this cell reports any error and the others go on
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.log").write_text(traceback.format_exc(), encoding="utf-8")
        reason = f"the engine failed with {type(error).__name__}: {error} (see {folder / 'engine.log'})"
        return CellResult(cell, Verdict.INFRA, reason)


def folder_name(cell: Cell) -> str:
    """Return a name for the cell's folder that is valid on any file system."""
    return re.sub(r"[^\w.-]+", "-", cell.label).strip("-")


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
