"""Runs a cell as a user would: `python script.py variant strategy device`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import repros.inside
from repros.inside.hook import STACKS_SIGNAL
from repros.model import Cell, Device, Observation
from repros.run import containment, logs
from repros.run.gather import Timeline, gather

INSIDE = Path(repros.inside.__file__).parent

RANK_GRACE = 15.0
"""Seconds that ranks get to end by themselves once the main process has: they have a peer's death to notice."""
_POLL = 0.1
_STACKS_PATIENCE = 1.0

# Set by launchers and schedulers; a cell that inherited them would take itself for a rank of somebody else's job.
_FOREIGN = re.compile(
    r"RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|ROLE_.*|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|SLURM_.*"
    r"|PMI_.*|OMPI_.*|LSB_.*|JSM_.*|KUBERNETES_PORT|PL_.*|LT_.*|ACCELERATE_.*|FSDP_.*|REPROS_(CELL|LOG|HOOKED|SIM|SIM_DEVICES)"
    r"|PYTHONHOME|PYTHONSTARTUP|PYTHONINSPECT|PYTHONWARNINGS|PYTEST_.*|COVERAGE_.*|VIRTUAL_ENV|CUDA_VISIBLE_DEVICES"
)


def run(cell: Cell, folder: Path, stop: threading.Event | None = None) -> Observation:
    """Run one cell below `folder` (made, must be new) and return when no process of it lives.

    An engine that cannot do its work (no disk, no process) gives an observation that is `broken`, never an exception.
    So does a run that somebody ends early by setting `stop`.
    """
    stop = stop or threading.Event()
    started = time.monotonic()
    try:
        # The token by which processes are found: one spelling for the engine and for them.
        folder = folder.resolve()
        folder.mkdir(parents=True)
        # Short, since unix sockets below it may have at most 107 characters.
        scratch = Path(tempfile.mkdtemp(prefix="repros-"))
    except OSError as error:
        return Observation((), 0.0, folder, broken=f"the cell's folder could not be made: {error}")
    try:
        timeline, main, status, leftovers = _run(cell, folder, scratch, stop)
        processes = gather(folder, timeline, main, status)
        broken = None if processes else "no process of the cell wrote anything down: the hook did not start"
        broken = "interrupted" if stop.is_set() else broken
        seconds = time.monotonic() - started
        return Observation(processes, seconds, folder, broken=broken, leftovers=leftovers)
    except OSError as error:
        return Observation((), time.monotonic() - started, folder, broken=f"the engine failed: {error}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(
    cell: Cell, folder: Path, scratch: Path, stop: threading.Event
) -> tuple[Timeline, int, int, int]:
    """Start the main process, wait for it and its ranks, end what is left."""
    log = folder / "main.log"
    command = [cell.environment.python, cell.repro.path.resolve(), cell.variant.name, cell.strategy, cell.device]
    with log.open("ab") as output:
        main = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=scratch,
            env=environment(cell, folder, scratch, log),
            start_new_session=True,
        )
    timeline = Timeline(started=time.monotonic())
    try:
        deadline = timeline.started + cell.repro.deadline
        if _wait(main, folder, deadline, stop):
            timeline.main_ended = time.monotonic()
            if not _let_ranks_end(folder, main.pid, min(deadline, timeline.main_ended + RANK_GRACE), stop):
                _take_stacks(folder, main.pid)
        elif not stop.is_set():
            timeline.deadline = timeline.cutoff = time.monotonic()
            _take_stacks(folder, main.pid)
    finally:
        timeline.cutoff = min(timeline.cutoff, time.monotonic())
        timeline.stopped = {process.pid for process in containment.members(folder, main.pid)}
        leftovers = len(timeline.stopped - _pids(folder, "main", "rank"))
        containment.end(folder, main.pid)
        status = main.wait()
        logs.trim(folder)
    return timeline, main.pid, status, leftovers


def environment(cell: Cell, folder: Path, scratch: Path, log: Path) -> dict[str, str]:
    """Return the environment variables of a cell's main process."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
    path = [str(INSIDE / "site"), *filter(None, [kept.get("PYTHONPATH")])]
    visible = ",".join(map(str, range(cell.processes))) if cell.device is Device.CUDA else ""
    ours = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        # A script must not shadow a library by its name.
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "CUDA_VISIBLE_DEVICES": visible,
        "HF_HUB_OFFLINE": "1",
        "TMPDIR": str(scratch),
        "REPROS_CELL": str(folder),
        "REPROS_LOG": str(log),
    }
    if cell.device is Device.SIM:
        ours |= {"REPROS_SIM": "1", "REPROS_SIM_DEVICES": str(cell.processes)}
    return kept | ours


def _free_port() -> int:
    """Return a port for the rendezvous that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(main: subprocess.Popen[bytes], folder: Path, deadline: float, stop: threading.Event) -> bool:
    """Wait for the main process; False when it is still there at the deadline or at a stop."""
    while time.monotonic() < deadline and not stop.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            main.wait(timeout=_POLL)
            return True
        logs.trim(folder)
    return False


def _let_ranks_end(folder: Path, session: int, until: float, stop: threading.Event) -> bool:
    """Wait for ranks that outlive the main process, not for helpers and strangers; False when some still live."""
    while time.monotonic() < until and not stop.is_set():
        alive = {process.pid for process in containment.members(folder, session)}
        if not alive & _pids(folder, "rank"):
            return True
        logs.trim(folder)
        time.sleep(_POLL)
    return False


def _take_stacks(folder: Path, session: int) -> None:
    """Ask every process that recorded its start for its stacks and wait until they are written."""
    known = _pids(folder, "main", "rank", "helper")
    asked = [process for process in containment.members(folder, session) if process.pid in known]
    files = [folder / "processes" / str(process.pid) / "stacks.txt" for process in asked]
    containment.signal_all(asked, STACKS_SIGNAL)
    patience = time.monotonic() + _STACKS_PATIENCE
    while time.monotonic() < patience and not all(file.exists() and file.stat().st_size for file in files):
        time.sleep(_POLL / 2)


def _pids(folder: Path, *roles: str) -> set[int]:
    """Return the pids of the processes that recorded one of these roles."""
    wanted = [f'"role": "{role}"'.encode() for role in roles]
    found = set()
    for file in folder.glob("processes/*/events.jsonl"):
        with contextlib.suppress(OSError):
            if any(role in file.read_bytes() for role in wanted):
                found.add(int(file.parent.name))
    return found
