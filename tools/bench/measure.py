"""Measurements of one cell: seconds, processor seconds and memory when run by hand, cold or warm."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

from repros.engine.cells import job_of, observe
from repros.engine.launch import Servers
from repros.engine.launch.containment import signal_all
from repros.engine.launch.environ import INSIDE
from repros.model import Cell, Device
from repros.simulated_gpus.tools.simulated import simulated_environ


@dataclass(frozen=True)
class Sample:
    """The cost of one run."""

    seconds: float
    """Wall-clock seconds."""
    cpu: float
    """Processor seconds of all processes; steadier than wall-clock seconds on a busy machine."""
    faults: int = 0
    """Page faults of all processes that needed no disk."""


@dataclass
class Series:
    """Several runs of the same cell in the same mode."""

    samples: list[Sample] = field(default_factory=list)
    peak: int | None = None
    """Most bytes that its processes had at one time, shared pages by share (PSS); from a run that is not a sample."""

    @property
    def seconds(self) -> list[float]:
        """Wall-clock seconds of the samples."""
        return [sample.seconds for sample in self.samples]

    @property
    def median(self) -> float:
        """Median of the wall-clock seconds."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """Median of the processor seconds."""
        return statistics.median(sample.cpu for sample in self.samples)


class Bench:
    """Runs cells by hand, cold or warm, below one folder and with one set of warm servers."""

    def __init__(self, folder: Path) -> None:
        """Create the folder's warm servers; everything that the runs write goes below it."""
        self.servers = Servers(folder / "servers")
        self._modes: dict[str, Callable[[Cell], object]] = {"by hand": by_hand, "cold": self._cold, "warm": self._warm}
        self._folder = folder
        self._count = itertools.count()

    def sample(self, mode: str, cell: Cell) -> Sample:
        """Run a cell once."""
        cpu, faults, started = self._cpu(), self._faults(), time.monotonic()
        self._modes[mode](cell)
        seconds = time.monotonic() - started
        return Sample(round(seconds, 3), round(self._cpu() - cpu, 3), self._faults() - faults)

    def peak(self, mode: str, cell: Cell) -> int:
        """Run a cell once and return the most bytes that its processes had; sampling takes time, so no seconds."""
        servers = self.server_pids()
        others = set() if mode == "warm" else servers
        with _Peak(others) as peak:
            self._modes[mode](cell)
        return peak.bytes

    def server_pids(self) -> set[int]:
        """Return the pids of the living warm servers."""
        return {server.pid for server in self.servers._servers.values() if server.alive}

    def _cold(self, cell: Cell) -> None:
        seen = observe(cell, self._new_folder())
        assert seen.broken is None, seen.broken

    def _warm(self, cell: Cell) -> None:
        seen = observe(cell, self._new_folder(), servers=self.servers)
        assert seen.broken is None, seen.broken

    def _new_folder(self) -> Path:
        return self._folder / f"{next(self._count):04}"

    def _cpu(self) -> float:
        """Return the processor seconds of this process, of its ended children, and of the servers with theirs."""
        seconds = spent()
        for pid in self.server_pids():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                seconds += times.user + times.system + times.children_user + times.children_system
        return seconds

    def _faults(self) -> int:
        """Return the page faults of this process, of its ended children, and of the servers with theirs."""
        own = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_minflt for usage in own) + sum(map(faults_of, self.server_pids()))


def faults_of(pid: int) -> int:
    """Return the page faults of a process and of its ended children: `minflt` and `cminflt` of proc(5)."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return int(fields[7]) + int(fields[8])
    return 0


def spent() -> float:
    """Return the processor seconds of this process and of its ended children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


_PATIENCE = 20
"""Deadlines after which a cell by hand counts as lost: a busy machine may take more than one."""


def by_hand(cell: Cell) -> None:
    """Run `python script.py variant strategy device` in the user's environment, without hook, logs or deadline.

    The simulated accelerator is not part of torch, so it is loaded as the engine does it.
    """
    environ = dict(os.environ)
    if cell.device is Device.SIM:
        path = [str(INSIDE / "site"), *filter(None, [environ.get("PYTHONPATH")])]
        environ |= {
            "PYTHONPATH": os.pathsep.join(path),
            "REPROS_SIM": "cuda",
            "REPROS_SIM_DEVICES": str(cell.processes),
        }
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [str(cell.environment.python), *job_of(cell).arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
        try:
            process.wait(cell.repro.deadline * _PATIENCE)
        finally:
            signal_all(_processes_of_session(process.pid), 9)
            process.wait()


def _processes_of_session(session: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == session:
                yield process


def measure_interleaved(bench: Bench, cell: Cell, modes: Sequence[str], rounds: int) -> dict[str, Series]:
    """Run a cell in every mode in turn, so that other load on the machine affects all modes alike."""
    series = {mode: Series() for mode in modes}
    for mode in modes:
        # Also fills the disk's cache and starts the warm server.
        series[mode].peak = bench.peak(mode, cell)
    for _ in range(rounds):
        for mode in modes:
            series[mode].samples.append(bench.sample(mode, cell))
    return series


_PROCESSES = 3
_KEEP_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}
"""glibc keeps freed memory. By default it returns some to the system and gets it again, page by page, now
on one device and now on the other, as the blocks happen to lie; that can take more time than the simulation."""


def time_epochs(python: Path, rounds: int, *, on_one_core: bool) -> dict[str, Any]:
    """Time epochs on sim and on the CPU, in turn, in three processes of an environment.

    The figures of one process are close together and may be far from another's: the ratio depends on the memory and the
    processors that a process happens to get. Each times a third of the rounds, rounded up.

    Args:
        python: the environment's.
        rounds: epochs of each network on each device; a short one is timed several times a round.
        on_one_core: whether a process may use one core only, so that no thread of it wakes up on another.
    """
    script = [str(python), str(Path(__file__).with_name("epoch.py")), str(-(-rounds // _PROCESSES))]
    script += ["--on-one-core"] if on_one_core else []
    environ = os.environ | simulated_environ() | _KEEP_MEMORY
    runs = []
    for _ in range(_PROCESSES):
        done = subprocess.run(script, env=environ, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    first, *others = runs
    for clock, of_networks in first["seconds"].items():
        for network, of_devices in of_networks.items():
            for device, taken in of_devices.items():
                taken += [seconds for run in others for seconds in run["seconds"][clock][network][device]]
    measured: dict[str, Any] = first
    return measured


def memory_of(processes: Sequence[psutil.Process]) -> int:
    """Return the bytes of processes: PSS if it can be read, else RSS, which counts shared pages for each."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.rss)
    return total


class _Peak:
    """Most memory of this process's descendants, sampled by a thread."""

    def __init__(self, others: set[int]) -> None:
        self.bytes = 0
        self._others = others
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            family = psutil.Process().children(recursive=True)
            self.bytes = max(self.bytes, memory_of([process for process in family if process.pid not in self._others]))
