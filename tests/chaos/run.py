"""A chaos run: which faults it injects, in which order, and what became of each."""

from __future__ import annotations

import os
import platform
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repros.engine.launch import Servers
from tests.chaos import (
    accelerator_faults,
    cell_faults,
    file_faults,
    hostile_faults,
    machine_faults,
    metadata_faults,
    runner_faults,
    shell_faults,
    stopped_faults,
    surrounding_faults,
)
from tests.chaos.fake_environment import toy
from tests.chaos.leaks import Violation
from tests.chaos.witnesses import Witnesses
from tests.chaos.worker import NotInjectedError, Worker

Fault = Callable[[Worker, random.Random], str]
"""Injects one fault and returns its outcome, such as the cell's verdict."""

FAULTS: dict[Fault, int] = {
    cell_faults.kill_a_rank: 34,
    cell_faults.kill_a_rank_after_its_end: 20,
    cell_faults.kill_the_leader: 18,
    cell_faults.kill_the_server: 16,
    cell_faults.kill_the_leader_of_a_daemon: 12,
    cell_faults.stop_a_rank: 12,
    cell_faults.ignore_signals: 8,
    cell_faults.flood_the_log: 6,
    cell_faults.write_garbage: 12,
    cell_faults.exhaust_file_descriptors: 10,
    cell_faults.limit_file_sizes: 10,
    cell_faults.leave_a_daemon: 14,
    cell_faults.leave_a_daemon_without_environ: 8,
    cell_faults.corrupt_events: 30,
    cell_faults.fill_the_disk: 8,
    runner_faults.kill_the_runner: 16,
    runner_faults.interrupt_the_runner: 9,
    runner_faults.kill_the_reaper: 3,
    runner_faults.kill_a_worker: 4,
    file_faults.damage_results: 20,
    file_faults.kill_a_writer: 5,
    file_faults.damage_a_header: 30,
    hostile_faults.plant_in_a_cell: 30,
    hostile_faults.plant_in_a_sandbox: 24,
    shell_faults.set_foreign_variables: 12,
    surrounding_faults.run_twice_in_one_folder: 12,
    surrounding_faults.damage_an_environment: 20,
    metadata_faults.damage_metadata: 20,
    surrounding_faults.turn_the_clock: 6,
    surrounding_faults.close_the_terminal: 10,
    surrounding_faults.hide_proc: 4,
    stopped_faults.stop_the_leader: 8,
    stopped_faults.stop_the_server: 4,
    stopped_faults.end_a_process: 16,
    stopped_faults.stop_the_probe: 4,
    machine_faults.hide_the_network: 4,
    machine_faults.fill_shared_memory: 4,
    machine_faults.fill_the_temporary_disk: 4,
    machine_faults.lose_the_network: 6,
    machine_faults.share_an_empty_cache: 6,
    machine_faults.forbid_the_cache: 8,
    machine_faults.match_another_encoding: 8,
    machine_faults.keep_the_cores_busy: 10,
}
"""Faults that need no torch; how many of each there are among some four hundred."""
TORCH_FAULTS: dict[Fault, int] = {
    cell_faults.kill_a_gloo_rank: 10,
    cell_faults.kill_a_gloo_server: 4,
    cell_faults.stop_a_gloo_rank: 2,
    cell_faults.occupy_the_port: 6,
    accelerator_faults.damage_the_accelerator: 8,
    shell_faults.set_foreign_variables_on_a_stack: 6,
}
"""Faults in cells with torch: on Gloo, on the simulated accelerator, and on a stack."""


@dataclass
class ChaosRun:
    """The faults still to be injected, and the outcomes so far."""

    plan: list[tuple[int, Fault]]
    seed: int
    torch: Path | None
    until: float
    """By the monotonic clock; no fault is begun after that."""
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each fault had each outcome."""
    seconds: dict[str, float] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def injected(self) -> int:
        """The number of faults that reached their target."""
        return sum(count for (_, outcome), count in self.outcomes.items() if not outcome.startswith("not injected"))

    def inject_all(self, folder: Path, workers: int, report_progress: Callable[[str], None]) -> None:
        """Inject every fault of the plan, `workers` side by side, until it is done or times out."""
        toy()  # parsed before the threads start: on CPython 3.11.7 `ast.parse` fails now and then in two at once
        threads = [threading.Thread(target=self._work, args=(folder / str(n), report_progress)) for n in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def figures(self, seconds: float) -> dict[str, Any]:
        """Return the record of a run that took `seconds`."""
        outcomes: dict[str, dict[str, int]] = {}
        for (name, outcome), count in sorted(self.outcomes.items()):
            outcomes.setdefault(name, {})[outcome] = count
        return {
            "schema": 1,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": self.seed,
            "platform": platform.platform(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "seconds": round(seconds),
            "injected": self.injected,
            "outcomes": outcomes,
            "violations": self.violations,
            "left_out": len(self.plan),
        }

    def summary(self) -> str:
        """Return the outcomes, one line for each fault."""
        lines = []
        for name in dict.fromkeys(name for name, _ in sorted(self.outcomes)):
            counts = {outcome: count for (fault, outcome), count in sorted(self.outcomes.items()) if fault == name}
            total = sum(counts.values())
            listed = ", ".join(f"{count} x {outcome}" for outcome, count in counts.items())
            lines.append(f"{name.replace('_', ' '):<40} {total:>4}  {self.seconds[name] / total:5.1f} s  {listed}")
        return "\n".join(lines)

    def _work(self, folder: Path, report_progress: Callable[[str], None]) -> None:
        folder.mkdir(parents=True)
        with Servers(folder / "servers") as servers:
            worker = Worker(folder, servers, Witnesses(folder / "witnesses"), self.torch)
            while (item := self._next()) is not None:
                number, fault = item
                name, begun = fault.__name__, time.monotonic()
                outcome = self._inject(worker, number, fault, report_progress)
                with self._lock:
                    self.outcomes[name, outcome] += 1
                    self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begun

    def _next(self) -> tuple[int, Fault] | None:
        with self._lock:
            return self.plan.pop(0) if self.plan and time.monotonic() < self.until else None

    def _inject(self, worker: Worker, number: int, fault: Fault, report_progress: Callable[[str], None]) -> str:
        """Inject one fault; return its outcome."""
        # Each fault has a random generator of its own, so that it can be repeated alone.
        rng = random.Random(f"{self.seed} {number}")  # noqa: S311 - has to be repeatable
        try:
            outcome = str(fault(worker, rng))
            worker.witnesses.check()
        except NotInjectedError as error:
            return f"not injected: {error}"
        except Exception as error:  # noqa: BLE001 - any error is reported, and the run goes on
            kind = "" if isinstance(error, Violation) else f"{type(error).__name__}: "
            violation = f"fault {number} {fault.__name__}: {kind}{error}"
            self.violations.append(violation)
            report_progress(violation)
            return "VIOLATION"
        return outcome


def plan_faults(seed: int, faults: int, torch: Path | None, only: str | None = None) -> list[tuple[int, Fault]]:
    """Return numbered faults; the seed decides their order and how many there are of each."""
    weights = {**FAULTS, **(TORCH_FAULTS if torch else {})}
    chosen = {fault: weight for fault, weight in weights.items() if only in {None, fault.__name__}}
    rng = random.Random(seed)  # noqa: S311 - has to be repeatable
    # Each at least once if there are enough, the rest by weight.
    once = list(chosen) if faults >= len(chosen) else []
    plan = [*once, *rng.choices(list(chosen), list(chosen.values()), k=faults - len(once))]
    rng.shuffle(plan)
    return list(enumerate(plan))
