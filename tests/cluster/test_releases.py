"""Bisections on a real cluster of two nodes: the same answers as on one machine, losses, and interruption."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from repros.cluster import open_releases
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import read_answers
from repros.scripts.bisect.bisection import Bisection, run_bisection
from repros.scripts.bisect.question import Question, build_question
from repros.scripts.bisect.search import Boundary
from tests.cluster.driver import ROOT, names
from tests.cluster.local import LocalCluster, local_cluster, marked
from tests.scripts.bisect.tiny_question import RELEASES, surroundings, write_spec, write_stack
from tests.tiny_stack import write_wheel

pytest.importorskip("ray", reason='needs Ray: pip install "repros[ray]"')
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

LASTS = """\
import os, pathlib, time

def run():
    begun = pathlib.Path({file!r})
    if not begun.exists():
        begun.with_name("being").write_text(str(os.getpid()))
        begun.with_name("being").rename(begun)
        time.sleep(600)
    raise ValueError("as documented")
"""
"""A release whose first run does not end."""


@pytest.fixture
def question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Question:
    for name, value in surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    return build_question(write_spec(tmp_path), write_stack(tmp_path), "tinylib", RELEASES, None, None)


@pytest.fixture
def cluster(question: Question) -> Iterator[LocalCluster]:
    with local_cluster(workers=2, cores=1) as running:
        yield running


def bisect_there(
    cluster: LocalCluster, question: Question, folder: Path, report_progress: Callable[[str], None]
) -> Bisection:
    os.environ["RAY_ADDRESS"] = cluster.address
    with open_releases("ray") as open_pool:
        return run_bisection(question, folder, report_progress, every=True, open_pool=open_pool)


def left() -> list[str]:
    """Return the processes and folders of a bisection that are left, after a while for them to go."""
    until = time.monotonic() + 30
    while True:
        found = names(marked(with_variable="REPROS_RUNNER"))
        cache, temporary = Path(os.environ["REPROS_CACHE_DIR"]), Path(os.environ["TMPDIR"])
        found += [path.name for path in cache.glob("environments/*-copy*") if path.is_dir()]
        found += [path.name for path in temporary.glob("repros-*")]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.2)


def test_a_bisection_gives_what_it_gives_on_one_machine(
    cluster: LocalCluster, question: Question, tmp_path: Path
) -> None:
    lines = list[str]()
    there = bisect_there(cluster, question, tmp_path / "there" / "x", lines.append)
    assert left() == []
    here = run_bisection(question, tmp_path / "here" / "x", lambda _: None, every=True)
    assert there.answers == here.answers
    assert there.boundaries == here.boundaries
    assert (there.boundaries.begins, there.boundaries.ends) == (Boundary(2, 0, (1,)), Boundary(3, 5, (4,)))
    makers = {line.partition(":")[0] for line in lines if "stack tiny: " in line}
    assert makers, lines
    there_kept, here_kept = (list(read_answers(tmp_path / name / "x" / "answers.jsonl")) for name in ("there", "here"))
    assert sorted(there_kept, key=str) == sorted(here_kept, key=str)
    logs = {path.relative_to(tmp_path / "there").parts[-4] for path in (tmp_path / "there").rglob("main.log")}
    assert logs == {"1.1", "1.2", "1.3", "1.4", "1.6", "1.7"}


def test_a_release_whose_node_is_lost_is_probed_on_another(
    cluster: LocalCluster, question: Question, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    write_wheel(tmp_path, "tinylib", LASTS.format(file=str(begun)), "1.4")

    def kill() -> None:
        while not begun.exists():
            time.sleep(0.05)
        above = {process.pid for process in psutil.Process(int(begun.read_text())).parents()}
        (lost,) = (worker for worker in cluster.workers if cluster.raylet(worker).pid in above)
        cluster.kill(lost)

    killer = threading.Thread(target=kill)
    killer.start()
    lines = list[str]()
    found = bisect_there(cluster, question, tmp_path / "there" / "x", lines.append)
    killer.join()
    assert not cluster.workers[1:]
    assert (found.boundaries.begins, found.boundaries.ends) == (Boundary(2, 0, (1,)), Boundary(3, 5, (4,)))
    assert any("once more: 1.4" in line for line in lines), lines


BISECTS = """\
import pickle, sys
from pathlib import Path
from repros.scripts.bisect.bisection import run_bisection
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.cluster import open_releases
from repros.model.errors import ReprosError

with open(sys.argv[1], "rb") as file:
    question = pickle.load(file)
try:
    with interrupt_on_signals(), open_releases("ray") as open_pool:
        say = lambda line: print(line, flush=True)
        run_bisection(question, Path(sys.argv[2]), say, every=True, open_pool=open_pool)
except KeyboardInterrupt as interruption:
    sys.exit(interruption_exit_code(interruption))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_ends_everything_everywhere_and_loses_no_answer(
    cluster: LocalCluster, question: Question, tmp_path: Path, number: int
) -> None:
    begun, folder = tmp_path / "begun", tmp_path / "there" / "x"
    write_wheel(tmp_path, "tinylib", LASTS.format(file=str(begun)), "1.7")
    (tmp_path / "question").write_bytes(pickle.dumps(question))
    command = [sys.executable, "-c", BISECTS, str(tmp_path / "question"), str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": cluster.address}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        while not begun.exists():
            assert driver.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        driver.send_signal(number)
        printed, _ = driver.communicate(timeout=60)
    assert driver.returncode == (130 if number == signal.SIGINT else -number)
    announced = {line.split()[1] for line in printed.splitlines() if line.startswith("tinylib")}
    kept = {answer.version for answer in read_answers(folder / "answers.jsonl")}
    assert announced - {"1.5"} <= kept
    assert "1.7" not in kept
    if number == signal.SIGINT:
        assert left() == []
    else:  # the copies of a killed bisection are removed by the next one
        assert [name for name in left() if "copy" not in name] == []
    begun.touch()
    again = bisect_there(cluster, question, folder, lambda _: None)
    assert again.answers[6].answer == "yes"
    versions = [answer.version for answer in read_answers(folder / "answers.jsonl")]
    assert len(versions) == len(set(versions)), "no release was probed twice"
    assert left() == []


def test_where_no_node_can_make_the_environment_the_bisection_ends(
    cluster: LocalCluster, question: Question, tmp_path: Path
) -> None:
    for wheel in tmp_path.glob("torch-*.whl"):
        wheel.unlink()
    with pytest.raises(ReprosError, match="stack tiny"):
        bisect_there(cluster, question, tmp_path / "there" / "x", lambda _: None)
    assert left() == []
