"""Runs a cell by hand, cold or warm, and says what it cost."""

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

from repros.engine.launch import Servers, run
from repros.engine.launch.cold import arguments
from repros.engine.launch.containment import signal_all
from repros.engine.launch.environ import INSIDE
from repros.model import Cell, Device


@dataclass(frozen=True)
class Sample:
    """What one run cost."""

    seconds: float
    """By the wall's clock."""
    cpu: float
    """Processor seconds of every process that was waited for; on a busy machine the steadier of the two."""


@dataclass
class Series:
    """The same cell run the same way, several times."""

    samples: list[Sample] = field(default_factory=list)
    peak: int | None = None
    """Bytes that its processes held at most at one time, shared pages by share (PSS); from a run that is no sample."""

    @property
    def seconds(self) -> list[float]:
        """The samples by the wall's clock."""
        return [sample.seconds for sample in self.samples]

    @property
    def median(self) -> float:
        """Median seconds by the wall's clock."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """Median processor seconds."""
        return statistics.median(sample.cpu for sample in self.samples)


class Bench:
    """The three ways to run a cell, below one folder and through one set of warm servers."""

    def __init__(self, folder: Path) -> None:
        """Take a folder for everything that the runs write."""
        self.servers = Servers(folder / "servers")
        self.ways: dict[str, Callable[[Cell], object]] = {"by hand": by_hand, "cold": self._cold, "warm": self._warm}
        self._folder = folder
        self._count = itertools.count()

    def sample(self, way: str, cell: Cell) -> Sample:
        """Run a cell once."""
        cpu, started = self._cpu(), time.monotonic()
        self.ways[way](cell)
        seconds = time.monotonic() - started
        return Sample(round(seconds, 3), round(self._cpu() - cpu, 3))

    def peak(self, way: str, cell: Cell) -> int:
        """Run a cell once and return the most bytes that its processes held; to look takes time, so it is not timed."""
        servers = self.server_pids()
        others = set() if way == "warm" else servers
        with _Peak(others) as peak:
            self.ways[way](cell)
        return peak.bytes

    def server_pids(self) -> set[int]:
        """Return the pids of the warm servers that live."""
        return {server.pid for server in self.servers._servers.values() if server.alive}

    def _cold(self, cell: Cell) -> None:
        seen = run(cell, self._new_folder())
        assert seen.broken is None, seen.broken

    def _warm(self, cell: Cell) -> None:
        seen = run(cell, self._new_folder(), servers=self.servers)
        assert seen.broken is None, seen.broken

    def _new_folder(self) -> Path:
        return self._folder / f"{next(self._count):04}"

    def _cpu(self) -> float:
        """Processor seconds of this process, of its children that ended, and of the servers with theirs."""
        spent = sum(resource.getrusage(who)[0] + resource.getrusage(who)[1] for who in _WHO)
        for pid in self.server_pids():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                spent += times.user + times.system + times.children_user + times.children_system
        return spent


_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def by_hand(cell: Cell) -> None:
    """Run `python script.py variant strategy device` in the user's environment, without hook, logs or deadline.

    The simulated accelerator is no part of torch, so what loads it has to be there by hand as well.
    """
    environ = dict(os.environ)
    if cell.device is Device.SIM:
        path = [str(INSIDE / "site"), *filter(None, [environ.get("PYTHONPATH")])]
        environ |= {
            "PYTHONPATH": os.pathsep.join(path),
            "REPROS_SIM": "1",
            "REPROS_SIM_DEVICES": str(cell.processes),
        }
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [str(cell.environment.python), *arguments(cell)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
        try:
            process.wait(cell.repro.deadline)
        finally:
            signal_all(_of_session(process.pid), 9)
            process.wait()


def _of_session(session: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == session:
                yield process


def interleaved(bench: Bench, cell: Cell, ways: Sequence[str], rounds: int) -> dict[str, Series]:
    """Run a cell every way in turn, so that what else the machine does falls on all ways alike."""
    series = {way: Series() for way in ways}
    for way in ways:
        # Fills the disk's cache and starts the warm server; and tells the memory on the way.
        series[way].peak = bench.peak(way, cell)
    for _ in range(rounds):
        for way in ways:
            series[way].samples.append(bench.sample(way, cell))
    return series


def epochs(python: Path, rounds: int) -> dict[str, Any]:
    """Time epochs on sim and on the CPU, in turn, in one process of an environment."""
    script = [str(python), str(Path(__file__).with_name("epoch.py")), str(rounds)]
    environ = os.environ | {"PYTHONPATH": str(INSIDE.parents[1])}
    done = subprocess.run(script, env=environ, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def held(processes: Sequence[psutil.Process]) -> int:
    """Return the bytes that processes hold: PSS where it can be read, else RSS, which counts shared pages for each."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.rss)
    return total


class _Peak:
    """Watches the descendants of this process from a thread."""

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
            self.bytes = max(self.bytes, held([process for process in family if process.pid not in self._others]))
