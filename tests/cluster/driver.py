"""A driver: `repros run --on ray` in a process of its own, and what it may leave behind."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from repros.engine import record
from repros.engine.record import RecordLine
from tests.chaos.leaks import Violation, slowness
from tests.cluster.local import marked

ROOT = Path(__file__).parents[2]
DOCUMENTED = {"failing": "reproduced", "fixed": "clean"}
"""The verdict of each of the toy's variants."""
_EXIT_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
_BEGIN = 60.0
"""Seconds within which the first cells run."""
_END = 240.0
"""Seconds within which a run ends."""
_LEAVE = 15.0
"""Seconds within which an interrupted run ends, and nothing of a killed one is left."""


class Driver:
    """One run of the toy's cells."""

    cells = 32

    def __init__(self, folder: Path, address: str, catalogue: Path, more: Sequence[str] = ()) -> None:
        """Start it."""
        folder.mkdir(parents=True)
        self.results = folder / "results.jsonl"
        self.stopped = False
        """Whether it was killed or interrupted."""
        self._out = folder / "out"
        self._expected: set[int] = {0}
        self._stopped_at = 0.0
        words = ["run", "--on", "ray", "--stack", "tiny", "--catalogue", str(catalogue), "--results", str(self.results)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": address}
        with self._out.open("wb") as out:
            self._process = psutil.Popen(
                [sys.executable, "-m", "repros", *words, *more],
                cwd=folder,
                env=environ,
                stdin=-3,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def lines(self) -> list[RecordLine]:
        """Return the results so far."""
        return list(record.read(self.results)) if self.results.exists() else []

    def text(self) -> str:
        """Return what it has printed."""
        return self._out.read_text("utf-8", "replace")

    def wait_for_cells(self) -> None:
        """Wait until the first cells run, or it has ended."""
        until = time.monotonic() + _BEGIN * slowness()
        while self.runs and not marked(with_variable="REPROS_CELL"):
            if time.monotonic() > until:
                raise Violation(f"no cell runs: {self.text()[-2000:]}")
            time.sleep(0.1)

    def sleep(self, seconds: float) -> bool:
        """Sleep while it runs; return whether it still does."""
        until = time.monotonic() + seconds
        while self.runs and time.monotonic() < until:
            time.sleep(0.05)
        return self.runs

    def kill(self) -> None:
        """SIGKILL it."""
        self._stop(signal.SIGKILL, {-signal.SIGKILL})

    def interrupt(self, rng: random.Random) -> None:
        """Interrupt it as a user or a scheduler does."""
        number = rng.choice(list(_EXIT_STATUS))
        self._stop(number, {_EXIT_STATUS[number]})

    def _stop(self, number: int, expected: set[int]) -> None:
        if not self.stopped:
            self.stopped, self._expected, self._stopped_at = True, expected, time.monotonic()
            self._process.send_signal(number)

    def check_end(self) -> None:
        """Wait for its end, and check its exit code and that all that it announced is recorded."""
        try:
            status = self._process.wait(_END * slowness())
        except psutil.TimeoutExpired:
            raise Violation(f"it does not end: {self.text()[-3000:]}") from None
        took = time.monotonic() - self._stopped_at if self.stopped else 0.0
        allowed = self._expected if self.stopped else {0, 1}
        if status not in allowed or took > _LEAVE * slowness():
            raise Violation(f"exit status {status} after {took:.1f} s: {self.text()[-3000:]}")
        announced = len(re.findall(r"^\[ *\d+/\d+\] \w", self.text(), re.MULTILINE))
        if len(self.lines()) < announced:
            raise Violation(f"{announced} results announced, {len(self.lines())} recorded")

    def check_nothing_left(self) -> None:
        """Check that no process of the engine and no folder of a run is left on any node."""
        until = time.monotonic() + _LEAVE * slowness()
        while True:
            left = [*names(marked(with_variable="REPROS_RUNNER")), *names(_workers()), *_folders()]
            if not left:
                return
            if time.monotonic() > until:
                raise Violation(f"left: {left}")
            time.sleep(0.1)

    def ensure_ended(self) -> None:
        """Kill it if it still runs."""
        if self.runs:
            self._process.kill()
            self._process.wait()


def _workers() -> list[psutil.Process]:
    """Return the processes of runs on the nodes."""
    return [process for process in marked() if " ".join(process.cmdline()).startswith("ray::NodeAgent")]


def names(processes: list[psutil.Process]) -> list[str]:
    """Return the command line of each process that still lives."""
    found = []
    for process in processes:
        try:
            found.append(f"{process.pid} {' '.join(process.cmdline())[:100]}")
        except psutil.Error:
            continue
    return found


def _folders() -> list[str]:
    temporary = Path(os.environ.get("TMPDIR", tempfile.gettempdir()))
    return [str(folder) for folder in temporary.glob("repros-*")]
