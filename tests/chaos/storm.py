"""Injects faults, chosen by a seed, and looks after each of them at everything that must hold.

    python -m tests.chaos.storm [--seed N] [--faults N] [--minutes N] [--torch PYTHON | --no-torch] [--only NAME]

After each fault: no process of the cell lives, no complete result is lost, no wrong verdict is recorded, and the next
cell runs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from repros import environments
from repros.engine.launch import Servers
from repros.stacks import stack
from tests.chaos import cells, paper, runners
from tests.chaos.cells import NotInjectedError, Place
from tests.chaos.witness import Violation

Fault = Callable[[Place, random.Random], str]

SHAM: dict[Fault, int] = {
    cells.kill_a_rank: 34,
    cells.kill_a_rank_after_its_end: 20,
    cells.kill_the_leader: 18,
    cells.kill_the_server: 16,
    cells.kill_the_leader_of_a_daemon: 12,
    cells.stop_a_rank: 12,
    cells.ignore_signals: 8,
    cells.flood: 6,
    cells.write_garbage: 12,
    cells.hoard_files: 10,
    cells.limit_file_sizes: 10,
    cells.leave_a_daemon: 14,
    cells.leave_a_daemon_without_environment: 8,
    cells.corrupt_events: 30,
    cells.fill_the_disk: 8,
    runners.kill_the_runner: 16,
    runners.ask_the_runner_to_end: 9,
    runners.kill_the_keeper: 3,
    runners.kill_a_worker: 4,
    paper.damage_results: 20,
    paper.kill_a_writer: 5,
    paper.damage_a_header: 30,
}
"""Without torch; how many of each among some three hundred."""
REAL: dict[Fault, int] = {
    cells.kill_a_gloo_rank: 10,
    cells.kill_a_gloo_server: 4,
    cells.stop_a_gloo_rank: 2,
    cells.take_the_port: 6,
}
"""With torch and Gloo."""


@dataclass
class Storm:
    """What a storm is to do, and what came of it."""

    plan: list[tuple[int, Fault]]
    seed: int
    torch: Path | None
    until: float
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rage(self, folder: Path, workers: int, say: Callable[[str], None]) -> None:
        """Inject every fault of the plan, side by side, until it is done or the time is up."""
        threads = [threading.Thread(target=self._work, args=(folder / str(n), say)) for n in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, folder: Path, say: Callable[[str], None]) -> None:
        folder.mkdir(parents=True)
        with Servers(folder / "servers") as servers:
            place = Place(folder, servers, self.torch)
            while (item := self._next()) is not None:
                number, fault = item
                name, begun = fault.__name__, time.monotonic()
                # Each with its own source of chance, so that one alone can be repeated whatever the others do.
                rng = random.Random(f"{self.seed} {number}")  # noqa: S311 - a seed that can be given again is the point
                try:
                    came = fault(place, rng)
                except NotInjectedError as error:
                    came = f"not injected: {error}"
                except Exception as error:  # noqa: BLE001 - whatever it is, it is news, and the storm goes on
                    came = "VIOLATION"
                    kind = "" if isinstance(error, Violation) else f"{type(error).__name__}: "
                    self.violations.append(f"fault {number} {name}: {kind}{error}")
                    say(self.violations[-1])
                with self._lock:
                    self.counts[name, str(came)] += 1
                    self.seconds[name] += time.monotonic() - begun  # type: ignore[assignment]

    def _next(self) -> tuple[int, Fault] | None:
        with self._lock:
            return self.plan.pop(0) if self.plan and time.monotonic() < self.until else None

    def told(self) -> str:
        """Return the counts, a line for each fault."""
        lines = []
        for name in dict.fromkeys(name for name, _ in sorted(self.counts)):
            came = {what: count for (one, what), count in sorted(self.counts.items()) if one == name}
            total = sum(came.values())
            said = ", ".join(f"{count} {what}" for what, count in came.items())
            lines.append(f"{name.replace('_', ' '):<40} {total:>4}  {self.seconds[name] / total:5.1f} s  {said}")
        return "\n".join(lines)


def choose(seed: int, faults: int, torch: Path | None, only: str | None = None) -> list[tuple[int, Fault]]:
    """Return numbered faults, in an order and with shares that the seed decides."""
    weights = {**SHAM, **(REAL if torch else {})}
    chosen = {fault: weight for fault, weight in weights.items() if only in {None, fault.__name__}}
    rng = random.Random(seed)  # noqa: S311 - see above
    # Each at least once where there is room, the rest by their shares.
    first = list(chosen) if faults >= len(chosen) else []
    rest = rng.choices(list(chosen), list(chosen.values()), k=faults - len(first))
    plan = [*first, *rest]
    rng.shuffle(plan)
    return list(enumerate(plan))


def main() -> int:
    """Rage, and print what came of it; 1 when something happened that must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--faults", type=int, default=330)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--torch", type=Path, help="an interpreter with torch (default: that of the stack `current`)")
    parser.add_argument("--no-torch", action="store_true", help="no cell with torch and Gloo")
    parser.add_argument("--only", help="this fault only")
    given = parser.parse_args()
    torch = None if given.no_torch else given.torch or environments.ensure(stack("current"), print)
    plan = choose(given.seed, given.faults, torch, given.only)
    print(f"seed {given.seed}: {len(plan)} faults", flush=True)
    begun = time.monotonic()
    storm = Storm(plan, given.seed, torch, begun + 60 * given.minutes)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        storm.rage(folder, given.workers, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(storm.told())
    injected = sum(count for (_, what), count in storm.counts.items() if not what.startswith("not injected"))
    took = time.monotonic() - begun
    print(f"seed {given.seed}: {injected} faults injected in {took:.0f} s, {len(storm.violations)} violations")
    for violation in storm.violations:
        print(violation)
    return 1 if storm.violations or storm.plan else 0


if __name__ == "__main__":
    sys.exit(main())
