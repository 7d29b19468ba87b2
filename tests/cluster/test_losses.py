"""What is lost on a real cluster, one thing at a time; the storm loses them at random."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine import record
from tests.cluster.driver import DOCUMENTED, Driver
from tests.cluster.local import TOY, LocalCluster, local_cluster, write_catalogue

pytest.importorskip("ray", reason='needs Ray: pip install "repros[ray]"')
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FEW = [word for name in "abcd" for word in ("--strategy", name)]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with local_cluster(workers=1, cores=1) as running:
        yield running


def start(cluster: LocalCluster, folder: Path, *more: str) -> Driver:
    driver = Driver(folder / "run", cluster.address, write_catalogue(folder, TOY), more or FEW)
    driver.wait_for_cells()
    return driver


def kill_lease(cluster: LocalCluster, but: set[int]) -> int:
    """Kill the worker that holds a cell's processors, another than these; return its pid."""
    while True:
        for process in cluster.processes(cluster.workers[0], "ray::run_reserved"):
            if process.pid not in but:
                process.kill()
                return process.pid
        time.sleep(0.02)


def test_a_cell_that_is_lost_twice_is_not_judged_and_the_others_are(cluster: LocalCluster, tmp_path: Path) -> None:
    driver = start(cluster, tmp_path)
    first = kill_lease(cluster, set())
    kill_lease(cluster, {first})
    driver.check_end()
    lines = driver.lines()
    (lost,) = (line for line in lines if line["verdict"] == "infra")
    assert lost["reason"].startswith("its process on the node ")
    assert len(lines) == 8
    assert all(line["verdict"] == DOCUMENTED[line["variant"]] for line in lines if line is not lost)
    driver.check_nothing_left()


def test_a_run_waits_for_a_node_and_goes_on_with_it(cluster: LocalCluster, tmp_path: Path) -> None:
    driver = start(cluster, tmp_path)
    cluster.kill(cluster.workers[0])
    driver.sleep(5)
    cluster.add()
    driver.check_end()
    assert {(line["variant"], line["verdict"]) for line in driver.lines()} == set(DOCUMENTED.items())
    assert len(driver.lines()) == 8
    assert "joined: " in driver.text()
    driver.check_nothing_left()


def test_a_process_that_is_stopped_is_given_up(cluster: LocalCluster, tmp_path: Path) -> None:
    driver = start(cluster, tmp_path)
    (process,) = cluster.processes(cluster.workers[0], "ray::NodeAgent")
    process.suspend()
    driver.check_end()
    assert {(line["variant"], line["verdict"]) for line in driver.lines()} == set(DOCUMENTED.items())
    assert "no answer for 60 s" in driver.text()
    driver.check_nothing_left()


def test_cells_leave_a_node_that_another_job_keeps_busy(cluster: LocalCluster, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")

    def hog() -> None:
        time.sleep(600)

    ray.init(address=cluster.address, log_to_driver=False)
    try:
        kept = ray.remote(num_cpus=1)(hog).remote()
        time.sleep(3)
        cluster.add()
        driver = start(cluster, tmp_path)
        driver.check_end()
        assert len(driver.lines()) == 8
        assert {(line["variant"], line["verdict"]) for line in driver.lines()} == set(DOCUMENTED.items())
        ray.cancel(kept, force=True)
    finally:
        ray.shutdown()


def test_an_environment_that_no_node_can_make_leaves_its_cells_unavailable(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    catalogue = write_catalogue(tmp_path, TOY)
    for wheel in tmp_path.glob("*.whl"):
        wheel.unlink()
    driver = Driver(tmp_path / "run", cluster.address, catalogue, FEW)
    driver.check_end()
    assert {line["verdict"] for line in record.read(driver.results)} == {"unavailable"}
    assert "stack tiny" in driver.text()
