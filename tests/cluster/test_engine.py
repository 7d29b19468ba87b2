"""Runs on a real cluster of two nodes: `repros run`, `repros matrix`, their interruption, and their errors."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine import record
from repros.engine.environments import drop
from repros.engine.launch.ports import free_port
from repros.engine.stacks import stack
from repros.model.settings import CatalogueLocations
from tests.chaos.leaks import slowness
from tests.cluster.compare import facts
from tests.cluster.driver import DOCUMENTED, ROOT, Driver
from tests.cluster.local import TOY, LocalCluster, local_cluster, write_catalogue
from tests.toy_cells import TOYS

pytest.importorskip("ray", reason='needs Ray: pip install "repros[ray]"')
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client() -> int:
    """The port of the cluster for drivers that are outside of it."""
    return free_port()


@pytest.fixture(scope="module")
def cluster(client: int, current_python: Path) -> Iterator[LocalCluster]:
    """Two nodes; the environment with torch is made before, as they have a cache of their own."""
    with local_cluster(workers=2, cores=1, client_port=client) as running:
        yield running


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toys = [TOYS / f"{name}.py" for name in ("raises", "asserts")]
    return write_catalogue(tmp_path_factory.mktemp("private"), TOY, *toys)


def repros(folder: Path, address: str | None, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **({"RAY_ADDRESS": address} if address else {})}
    command = [sys.executable, "-m", "repros", *words]
    limit = 280 * slowness()
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=limit, check=False)


SELECTION = ("--catalogue", "catalogue", "--stack", "tiny")


def test_a_run_gives_what_it_gives_on_one_machine(cluster: LocalCluster, catalogue: Path) -> None:
    folder = catalogue.parent
    chosen = ["RPR-9001", *SELECTION]
    here = repros(folder, None, "run", *chosen, "--results", "here.jsonl")
    there = repros(folder, cluster.address, "run", "--on", "ray", *chosen, "--results", "there.jsonl")
    assert (here.returncode, there.returncode, there.stderr) == (1, 1, "")
    assert facts(folder / "there.jsonl") == facts(folder / "here.jsonl")
    assert len(facts(folder / "there.jsonl")) == 11
    for line in record.read(folder / "there.jsonl"):
        logs = folder / str(line["logs"])
        agrees = line["verdict"] in {"reproduced", "clean"}
        assert (logs / "main.log").exists() is not agrees, line


def test_a_driver_outside_of_the_cluster_gets_the_same(cluster: LocalCluster, client: int, catalogue: Path) -> None:
    folder = catalogue.parent
    chosen = ["RPR-9001", *SELECTION, "--variant", "failing", "--variant", "gone"]
    address = f"ray://127.0.0.2:{client}"
    there = repros(folder, None, "run", "--on", address, *chosen, "--results", "client.jsonl")
    assert [fact[0] for fact in facts(folder / "client.jsonl").values()] == ["reproduced", "gone"], there
    assert there.returncode == 1


def test_real_cells_give_what_they_give_on_one_machine(
    cluster: LocalCluster, current_python: Path, tmp_path: Path
) -> None:
    """Ranks under Gloo, warm and cold, a wrong result without an error, and an optimizer alone."""
    chosen = ["RPR-0005", "RPR-0012", "RPR-0021", "--variant", "failing", "--variant", "fixed", "--device", "cpu"]
    chosen += ["--strategy", "ddp", "--strategy", "ddp_spawn", "--strategy", "auto", "--python", str(current_python)]
    here = repros(tmp_path, None, "run", *chosen, "--results", "here.jsonl")
    there = repros(tmp_path, cluster.address, "run", "--on", "ray", *chosen, "--results", "there.jsonl")
    assert (here.returncode, there.returncode, there.stderr) == (0, 0, ""), (here, there)
    assert facts(tmp_path / "there.jsonl") == facts(tmp_path / "here.jsonl")
    assert len(facts(tmp_path / "there.jsonl")) >= 8


def test_the_matrix_keeps_the_same_evidence_and_drops_what_it_made(cluster: LocalCluster, catalogue: Path) -> None:
    folder = catalogue.parent
    words = ["matrix", "RPR-9002", *SELECTION, "--results", "matrix.jsonl"]
    drop(stack("tiny", CatalogueLocations(from_option=(catalogue,))))  # a run has made it, and keeps it for good
    here = repros(folder, None, *words, "--evidence", "here")
    there = repros(folder, cluster.address, *words, "--evidence", "there", "--on", "ray")
    assert (here.returncode, there.returncode, there.stderr) == (0, 0, ""), (here, there)
    assert " stack tiny" in there.stdout
    evidence = [(folder / name / "tiny" / "RPR-9002.toml").read_text() for name in ("here", "there")]
    assert evidence[0] == evidence[1]
    again = repros(folder, cluster.address, *words, "--evidence", "there", "--on", "ray", "--dry-run")
    assert again.stdout.endswith("\n0 cells to run\n"), again


def test_an_interrupted_run_ends_everything_everywhere(cluster: LocalCluster, catalogue: Path) -> None:
    driver = Driver(catalogue.parent / "interrupted", cluster.address, catalogue, ["ACME-9200"])
    driver.wait_for_cells()
    driver.sleep(4)
    driver.interrupt(random.Random(1))  # noqa: S311 - any
    driver.check_end()
    driver.check_nothing_left()
    assert all(line["verdict"] == DOCUMENTED[line["variant"]] for line in driver.lines())


def test_a_killed_driver_leaves_nothing_and_loses_nothing(cluster: LocalCluster, catalogue: Path) -> None:
    driver = Driver(catalogue.parent / "killed", cluster.address, catalogue, ["ACME-9200"])
    driver.wait_for_cells()
    driver.sleep(6)
    driver.kill()
    driver.check_end()
    driver.check_nothing_left()
    assert all(line["verdict"] == DOCUMENTED[line["variant"]] for line in driver.lines())


def test_a_node_with_another_repros_is_refused(cluster: LocalCluster, catalogue: Path, tmp_path: Path) -> None:
    code = "import repros, sys; repros.__version__ = '9.9'\nfrom repros.cli import main\nsys.exit(main(sys.argv[1:]))"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": cluster.address}
    words = ["run", "--on", "ray", "RPR-9001", *SELECTION, "--results", str(tmp_path / "r.jsonl")]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=catalogue.parent, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert " 9.9" in done.stderr
    assert done.stderr.count("\n") == 1
