"""A worker of the chaos run: it runs cells through the engine in this process and injects one fault into each."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from repros.engine import record
from repros.engine.cells import observe
from repros.engine.judge import judge
from repros.engine.launch import Servers
from repros.model import CellResult, Verdict
from tests.chaos.fake_environment import cell
from tests.chaos.leaks import Violation, check_no_process_left, slowness, wait_for
from tests.chaos.witnesses import Witnesses


class NotInjectedError(Exception):
    """A fault that could not be injected, because its target was gone or the machine does not permit it."""


DOCUMENTED = {"failing": Verdict.REPRODUCED, "fixed": Verdict.CLEAN, "hangs": Verdict.REPRODUCED}
"""The toy's verdicts without a fault."""


@dataclass
class Worker:
    """A worker's folder, warm servers, results file, and the files that none of its cells may change."""

    folder: Path
    servers: Servers
    witnesses: Witnesses
    torch: Path | None = None
    """An interpreter with torch, for cells that use Gloo."""
    count: int = 0
    reasons: list[str] = field(default_factory=list)
    """The reasons of all recorded results, in order."""

    def new_folder(self) -> Path:
        """Return a path that does not exist yet."""
        self.count += 1
        return self.folder / f"{self.count:04}"

    def record(self, result: CellResult) -> None:
        """Record a result and check that all earlier ones are still there."""
        results = self.folder / "results.jsonl"
        record.append(results, result)
        self.reasons.append(result.reason)
        if [line["reason"] for line in record.read(results)] != self.reasons:
            raise Violation("a result that was complete is lost")


@dataclass(frozen=True)
class RunningCell:
    """A running cell and its processes, as targets of a fault."""

    folder: Path
    ranks: tuple[int, int]

    @property
    def leader(self) -> int:
        """The process that the engine started, or that its warm server forked."""
        return os.getsid(self.ranks[0])

    @property
    def server(self) -> int:
        """The warm server."""
        with open(f"/proc/{self.leader}/stat") as file:  # noqa: PTH123 - /proc
            return int(file.read().rpartition(")")[2].split()[1])


Strike = Callable[[RunningCell, random.Random], None]
"""Injects a fault into a running cell."""


@dataclass(frozen=True)
class Trial:
    """One cell of the toy to inject a fault into, and the verdicts that are correct then."""

    mode: str
    """What the toy does before it ends; without a strike, this is the fault."""
    strike: Strike | None = None
    allowed: frozenset[Verdict] | None = None
    """None: the documented verdict alone."""
    variants: tuple[str, ...] = ("failing", "fixed")
    """The variants to choose from."""
    deadline: float = 20
    warm: bool | None = None
    """How to launch the cell; None: by chance."""
    torch: bool = False
    """Whether the cell uses torch and Gloo."""
    folder: Path | None = None
    """The cell folder, if it matters."""


def run_trial(worker: Worker, rng: random.Random, trial: Trial) -> Verdict:
    """Run the cell, strike once both ranks are ready, and check everything that must hold; return the verdict."""
    warm = rng.random() < 0.5 if trial.warm is None else trial.warm
    variant = rng.choice(trial.variants)
    target = cell(trial.mode, variant, trial.deadline * slowness(), worker.torch if trial.torch else None)
    folder = trial.folder or worker.new_folder()
    with _strike_when_ready(trial, folder, rng) as struck:
        result = judge(target, observe(target, folder, servers=worker.servers if warm else None))
    check_no_process_left(folder)
    if trial.strike and not struck:
        raise NotInjectedError("the cell ended before")
    if result.verdict not in (trial.allowed or {DOCUMENTED[variant]}):
        launch = "warm" if warm else "cold"
        raise Violation(f"{trial.mode} {variant} {launch}: {result.verdict}: {result.reason}")
    worker.record(result)
    _check_next_cell(worker, rng, warm=warm and not trial.torch)
    return result.verdict


@contextlib.contextmanager
def _strike_when_ready(trial: Trial, folder: Path, rng: random.Random) -> Iterator[list[RunningCell]]:
    """Strike from a thread as soon as both ranks are ready; yield a list that then contains the cell."""
    struck: list[RunningCell] = []

    def wait_and_strike(strike: Strike) -> None:
        ready = [wait_for(folder, f"ready-{rank}", trial.deadline) for rank in (0, 1)]
        ranks = [int(file.read_text()) for file in ready if file]
        with contextlib.suppress(OSError):
            if len(ranks) == 2:
                running = RunningCell(folder, (ranks[0], ranks[1]))
                strike(running, rng)
                struck.append(running)

    if trial.strike is None:
        yield struck
        return
    thread = threading.Thread(target=wait_and_strike, args=(trial.strike,))
    thread.start()
    try:
        yield struck
    finally:
        thread.join()


def _check_next_cell(worker: Worker, rng: random.Random, *, warm: bool) -> None:
    """Run a cell without a fault, which must end as documented."""
    target = cell("plain", variant := rng.choice(["failing", "fixed"]), 30 * slowness())
    result = judge(target, observe(target, worker.new_folder(), servers=worker.servers if warm else None))
    if result.verdict is not DOCUMENTED[variant]:
        raise Violation(f"the next cell: {result.verdict}: {result.reason} {_read_files(result)}")
    worker.record(result)


def _read_files(result: CellResult) -> str:
    """Return what the cell's processes wrote."""
    assert result.observation is not None
    files = sorted(file for file in result.observation.folder.rglob("*") if file.is_file())
    return "".join(f"\n--- {file.name}\n{file.read_bytes()[-1500:]!r}" for file in files)
