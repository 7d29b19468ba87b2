"""A node's part of a run, in this process and without Ray: real environments of a few bytes, real cells."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

from repros.cluster.node_agent import CellEndedError, NodeAgent, RunSettings, Site, WorkItem
from repros.cluster.payload import Payload
from repros.engine import environments
from repros.engine.stacks import load_stacks
from repros.model import Device, Verdict
from repros.model.settings import CatalogueLocations
from tests.chaos.leaks import processes_with, slowness
from tests.cluster.driver import ROOT
from tests.cluster.local import TOY, write_catalogue
from tests.toy_cells import TOYS


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    catalogue = write_catalogue(tmp_path)
    stack = load_stacks(CatalogueLocations(from_option=(catalogue,)))["tiny"]
    return Site("tiny", stack, Payload.pack(stack.lock))


@pytest.fixture
def node(site: Site) -> Iterator[NodeAgent]:
    before = dict(os.environ)
    made = NodeAgent()
    yield made
    made.close()
    os.environ.clear()
    os.environ.update(before)


def works(*variants: str, script: Path = TOYS / "raises.py", strategy: str = "plain") -> list[WorkItem]:
    return [WorkItem(Payload.pack(script), variant, strategy, Device.CPU) for variant in variants]


def test_cells_run_in_an_environment_that_the_node_makes(node: NodeAgent, site: Site) -> None:
    assert node.find_ready([site]) == []
    assert node.prepare(site, works("failing", "fixed", "gone"), RunSettings()) is None
    assert node.find_ready([site]) == ["tiny"]
    outcomes = [node.run(str(number), "tiny", number, ()) for number in range(3)]
    assert [outcome.result.verdict for outcome in outcomes] == [Verdict.REPRODUCED, Verdict.CLEAN, Verdict.GONE]
    assert any("stack tiny: " in line for line in node.status().lines)


def test_a_cell_has_the_gpus_that_ray_gives_to_it(node: NodeAgent, site: Site) -> None:
    node.prepare(site, works("fixed"), RunSettings())
    assert node.run("1", "tiny", 0, ("3", "1")).result.cell.gpus == ("3", "1")


def test_the_logs_of_a_cell_come_back_if_it_does_not_agree(node: NodeAgent, site: Site) -> None:
    node.prepare(site, works("fixed", "gone"), RunSettings())
    agrees, status = (node.run(str(number), "tiny", number, ()) for number in range(2))
    assert agrees.logs is None
    assert status.logs is not None
    with tarfile.open(fileobj=BytesIO(status.logs)) as tar:
        names = tar.getnames()
    assert "RPR-9001-gone-plain-cpu-tiny/main.log" in names
    assert status.result.observation
    assert status.result.observation.folder == status.base / "RPR-9001-gone-plain-cpu-tiny"
    assert not status.base.exists()


def test_an_environment_that_this_run_made_is_dropped_unless_it_is_kept(node: NodeAgent, site: Site) -> None:
    assert site.stack
    node.prepare(site, works("fixed"), RunSettings(keep=True))
    node.release("tiny")
    assert environments.ready(site.stack)
    node.prepare(site, works("fixed"), RunSettings(keep=False))
    node.release("tiny")
    assert not environments.ready(site.stack)


def test_an_environment_that_cannot_be_made_is_reported(node: NodeAgent, site: Site, tmp_path: Path) -> None:
    for wheel in tmp_path.glob("*.whl"):
        wheel.unlink()
    broken = node.prepare(site, works("fixed"), RunSettings())
    assert broken
    assert "stack tiny" in str(broken.broken)


def test_an_interpreter_that_is_not_there_is_reported(node: NodeAgent) -> None:
    broken = node.prepare(Site("/nowhere/python", python=Path("/nowhere/python")), works("fixed"), RunSettings())
    assert broken
    assert str(broken.broken).startswith("/nowhere/python: cannot be run")
    assert str(node.describe(Path("/nowhere/python"))).startswith("/nowhere/python: cannot be run")


def test_a_cell_that_was_ended_does_not_begin(node: NodeAgent, site: Site) -> None:
    node.prepare(site, works("fixed"), RunSettings())
    node.end("1")
    with pytest.raises(CellEndedError):
        node.run("1", "tiny", 0, ())


@pytest.mark.parametrize("closing", [False, True], ids=["ended", "closed"])
def test_a_running_cell_can_be_ended(node: NodeAgent, site: Site, closing: bool) -> None:
    node.prepare(site, works("failing", script=TOY, strategy="a") * 9, RunSettings())
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(node.run, "1", "tiny", 0, ())
        while "1" not in node.status().running:
            time.sleep(0.01)
        if closing:
            node.close()
        else:
            node.end("1")
        with pytest.raises(CellEndedError):
            outcome.result(20)


def test_a_closed_node_leaves_no_folder(node: NodeAgent, site: Site, tmp_path: Path) -> None:
    assert [folder.name for folder in tmp_path.glob("repros-*")] != []
    node.prepare(site, works("gone"), RunSettings())
    node.run("1", "tiny", 0, ())
    node.close()
    assert [folder.name for folder in tmp_path.glob("repros-*")] == []


ENDS = """\
import os, pickle, signal, sys, time
import psutil
from concurrent.futures import ThreadPoolExecutor
from repros.cluster.node_agent import NodeAgent, RunSettings

with open(sys.argv[1], "rb") as file:
    site, works = pickle.load(file)


def marked():
    for process in psutil.process_iter():
        try:
            if process.environ().get("REPROS_TEST_ENDS") == os.environ["REPROS_TEST_ENDS"]:
                yield process
        except psutil.Error:
            continue


node = NodeAgent()
node.prepare(site, works, RunSettings())
ThreadPoolExecutor(1).submit(node.run, "1", "tiny", 0, ())
while "sleep" not in {child.name() for child in marked()}:
    time.sleep(0.1)
for child in psutil.Process().children():
    child.kill()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_where_ray_kills_the_reaper_with_the_process(site: Site, tmp_path: Path) -> None:
    """Ray kills the children of a worker that it ends."""
    (tmp_path / "given").write_bytes(pickle.dumps((site, works("failing", script=TOY, strategy="a"))))
    token = f"REPROS_TEST_ENDS={tmp_path}"
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "REPROS_TEST_ENDS": str(tmp_path)}
    command = [sys.executable, "-c", ENDS, str(tmp_path / "given")]
    done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL, done
    until = time.monotonic() + 5 * slowness()
    while left := [*processes_with(token), *tmp_path.glob("repros-*")]:
        assert time.monotonic() < until, left
        time.sleep(0.1)
