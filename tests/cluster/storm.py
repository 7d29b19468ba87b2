"""Kill nodes, workers and drivers of a real Ray cluster at random while cells run, and check that nothing is lost.

    python -m tests.cluster.storm [--seed N] [--faults N] [--minutes N] [--out FILE]

The invariants: each cell of a run has one result; it is what the script documents, or `infra` after the cell was lost
twice; a killed driver loses no line that was announced; an interrupted one ends with its exit code; and no process and
no folder of a run is left on any node.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.chaos.leaks import Violation, slowness
from tests.cluster.driver import DOCUMENTED, Driver
from tests.cluster.kept import keep
from tests.cluster.local import TOY, LocalCluster, local_cluster, write_catalogue

WORKERS, CORES = 3, 1
_OFTEN = (0.8, 4.0)
"""Seconds between two faults, on a machine whose processors are free."""
_RESULTS = 4
"""The most results between two faults; however slow the machine is, a run then has several."""


def kill_a_node(cluster: LocalCluster, _: Driver, rng: random.Random) -> None:
    """SIGKILL a raylet and all of its workers; another node comes."""
    cluster.kill(rng.choice(cluster.workers))
    cluster.add()


def kill_a_raylet(cluster: LocalCluster, _: Driver, rng: random.Random) -> None:
    """SIGKILL a raylet, whose workers notice it themselves; another node comes."""
    worker = rng.choice(cluster.workers)
    cluster.raylet(worker).kill()
    cluster.forget(worker)
    cluster.add()


def kill_the_process_of_a_node(cluster: LocalCluster, _: Driver, rng: random.Random) -> None:
    """SIGKILL the run's own process on a node."""
    found = [process for worker in cluster.workers for process in cluster.processes(worker, "ray::NodeAgent")]
    rng.choice(found).kill()


def kill_a_lease(cluster: LocalCluster, _: Driver, rng: random.Random) -> None:
    """SIGKILL the worker that holds a cell's processors."""
    found = [process for worker in cluster.workers for process in cluster.processes(worker, "ray::run_reserved")]
    rng.choice(found).kill()


def kill_the_driver(_: LocalCluster, driver: Driver, __: random.Random) -> None:
    """SIGKILL the driver."""
    driver.kill()


def interrupt_the_driver(_: LocalCluster, driver: Driver, rng: random.Random) -> None:
    """Send SIGINT, SIGTERM or SIGHUP to the driver."""
    driver.interrupt(rng)


Fault = Callable[[LocalCluster, Driver, random.Random], None]
FAULTS: dict[Fault, int] = {
    kill_a_node: 20,
    kill_a_raylet: 8,
    kill_the_process_of_a_node: 16,
    kill_a_lease: 16,
    kill_the_driver: 4,
    interrupt_the_driver: 4,
}
"""Faults, and how many of each there are among some seventy."""


class Storm:
    """One storm: driver after driver, with faults in each."""

    def __init__(self, seed: int, faults: int, folder: Path) -> None:
        """Choose the faults."""
        self.rng = random.Random(seed)  # noqa: S311 - a fault that is found has to be found again
        self.faults = self.rng.choices(list(FAULTS), weights=list(FAULTS.values()), k=faults)
        self.injected: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.retried = self.runs = 0
        self.violations: list[str] = []
        self._folder = folder
        self._catalogue = write_catalogue(folder, TOY)

    def rage(self, cluster: LocalCluster, until: float, report_progress: Callable[[str], None]) -> None:
        """Run drivers until all faults are injected, or until the timeout."""
        while self.faults and time.monotonic() < until:
            self.runs += 1
            driver = Driver(self._folder / f"run-{self.runs}", cluster.address, self._catalogue)
            try:
                self._drive(cluster, driver, report_progress)
                self._check(driver)
            except Violation as violation:
                self.violations.append(f"run {self.runs}: {violation}")
                report_progress(f"VIOLATION: {violation}")
            finally:
                driver.ensure_ended()

    def _drive(self, cluster: LocalCluster, driver: Driver, report_progress: Callable[[str], None]) -> None:
        """Inject faults into one run until it has ended."""
        driver.wait_for_cells()
        while driver.runs:
            if self._wait(driver) and self.faults:
                fault = self.faults[-1]
                try:
                    fault(cluster, driver, self.rng)
                except IndexError:  # there is no such process now
                    continue
                self.faults.pop()
                self.injected[fault.__name__] += 1
                report_progress(
                    f"{self.injected.total()}: {fault.__name__} at {len(driver.lines())} results of run {self.runs}"
                )
        driver.check_end()

    def _wait(self, driver: Driver) -> bool:
        """Wait for some results, or for a while; return whether the driver still runs."""
        until = time.monotonic() + self.rng.uniform(*_OFTEN) * slowness()
        enough = len(driver.lines()) + self.rng.randint(1, _RESULTS)
        while driver.runs and time.monotonic() < until and len(driver.lines()) < enough:
            driver.sleep(0.2)
        return driver.sleep(self.rng.uniform(0, 1))

    def _check(self, driver: Driver) -> None:
        lines = driver.lines()
        self.retried += driver.text().count("once more: a cell")
        self.verdicts.update(line["verdict"] for line in lines)
        cells = Counter((line["variant"], line["strategy"]) for line in lines)
        if twice := [cell for cell, number in cells.items() if number > 1]:
            raise Violation(f"recorded twice: {twice}")
        if not driver.stopped and len(cells) != driver.cells:
            raise Violation(f"{len(cells)} of {driver.cells} cells have a result: {driver.text()[-3000:]}")
        for line in lines:
            is_lost = line["verdict"] == "infra" and "so was another before it" in line["reason"]
            if line["verdict"] != DOCUMENTED[line["variant"]] and not is_lost:
                raise Violation(f"{line['variant']} {line['strategy']}: {line['verdict']}: {line['reason']}")
        driver.check_nothing_left()

    def figures(self, seconds: float) -> dict[str, object]:
        """Return what the storm did, for `docs/scale.md`."""
        return {
            "faults": dict(sorted(self.injected.items())),
            "runs": self.runs,
            "results": dict(sorted(self.verdicts.items())),
            "tried again": self.retried,
            "violations": len(self.violations),
            "seconds": round(seconds),
        }


def main() -> int:
    """Let the storm rage and print its figures; return 1 after a violation or when time ran out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep the figures in this file")
    given = parser.parse_args()
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    print(f"seed {given.seed}", flush=True)
    try:
        storm = Storm(given.seed, given.faults, folder)
        with local_cluster(WORKERS, CORES) as cluster:
            storm.rage(cluster, begun + 60 * given.minutes, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = storm.figures(time.monotonic() - begun) | {"seed": given.seed}
    print(json.dumps(figures, indent=2), *storm.violations, sep="\n")
    if given.out:
        keep(given.out, "storm", figures)
    return 1 if storm.violations or storm.faults else 0


if __name__ == "__main__":
    sys.exit(main())
