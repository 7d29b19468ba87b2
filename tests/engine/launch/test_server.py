"""A warm server whose environment prints, forks, stops or dies where a library may: no cell waits without an end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import repros
from repros.engine.cells import job_of, observe
from repros.engine.judge import judge
from repros.engine.launch import Servers, patience
from repros.engine.launch import server as launching
from repros.engine.launch.environ import for_device
from repros.engine.launch.job import RunFolders
from repros.engine.launch.warm import _PROGRAM
from repros.model import Cell, Device, Verdict
from tests.engine.busy_start import make_environment
from tests.toy_cells import living

Environment = Callable[[str], Path]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Return a function that makes an environment which does something as Python starts in a warm server."""

    return lambda code: make_environment(tmp_path / "venv", code, only_in="REPROS_SERVER")


@pytest.fixture
def cell(toy_cell: Callable[..., Cell]) -> Callable[..., Cell]:
    """Return a function that makes a toy's cell with a deadline, in seconds."""

    def make(slug: str, python: Path, deadline: float = 30) -> Cell:
        made = toy_cell(slug, python=python)
        return replace(made, repro=replace(made.repro, deadline=deadline))

    return make


@pytest.mark.parametrize(
    "act",
    [
        "print('a line as Python starts')",
        "print('{\"ready\": 0}', flush=True)",
        "os.write(1, b'no line\\xff')",
        "atexit.register(print, 'a line')",
        "os.close(1)",
    ],
)
def test_what_an_environment_prints_is_no_message(
    act: str, environment: Environment, cell: Callable[..., Cell], tmp_path: Path
) -> None:
    python = environment(act)
    with Servers(tmp_path / "servers") as servers:
        result = judge(target := cell("raises", python), observe(target, tmp_path / "cell", servers=servers))
    assert result.verdict is Verdict.REPRODUCED, result.reason
    (log,) = (tmp_path / "servers").iterdir()
    printed = re.search(r"a line as Python starts|{.*}|no line", act)
    assert printed is None or printed[0] in log.read_text("utf-8", "replace")


@pytest.mark.parametrize("act", ["os.kill(os.getpid(), signal.SIGSTOP)", "time.sleep(600)"], ids=["stopped", "hangs"])
def test_a_leader_that_does_not_come_out_of_its_fork_is_ended_at_the_deadline(
    act: str, environment: Environment, cell: Callable[..., Cell], tmp_path: Path
) -> None:
    python = environment(f"os.register_at_fork(after_in_child=lambda: {act})")
    with Servers(tmp_path / "servers") as servers:
        result = judge(target := cell("raises", python, 1), observe(target, tmp_path / "cell", servers=servers))
        (server,) = servers._servers.values()
        assert server.alive
        assert psutil.Process(server.pid).children() == []
    assert (result.verdict, result.observation.processes if result.observation else None) == (Verdict.INFRA, ())


def test_a_server_that_is_stopped_before_it_is_ready_is_not_waited_for(
    environment: Environment, cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.1)
    python = environment("os.kill(os.getpid(), signal.SIGSTOP)")
    with Servers(tmp_path / "servers") as servers:
        result = judge(target := cell("raises", python), observe(target, tmp_path / "cell", servers=servers))
        (server,) = servers._servers.values()
        assert not server.alive
    assert result.verdict is Verdict.INFRA
    assert [part in result.reason for part in (str(server.pid), "SIGSTOP")] == [True, True]


def test_a_server_that_is_stopped_while_its_cell_runs_costs_that_cell(
    environment: Environment, cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_REPORT_TIMEOUT", 0.5)
    monkeypatch.setattr(launching, "_POLL", 0.2)
    python = environment("pass")
    with Servers(tmp_path / "servers") as servers:

        def strike() -> None:
            until = time.monotonic() + 20
            while not list((tmp_path / "cell").glob("processes/*/events.jsonl")) and time.monotonic() < until:
                time.sleep(0.02)
            (server,) = servers._servers.values()
            os.kill(server.pid, signal.SIGSTOP)

        thread = threading.Thread(target=strike)
        thread.start()
        target = cell("ignores_signals", python, 2)
        result = judge(target, observe(target, tmp_path / "cell", servers=servers))
        thread.join()
        assert result.verdict is Verdict.INFRA
        assert result.reason.endswith(" -9")
        assert living(tmp_path / "cell") == []
        target = cell("raises", python)
        assert judge(target, observe(target, tmp_path / "next", servers=servers)).verdict is Verdict.REPRODUCED


def test_a_server_that_dies_of_a_late_import_fails_its_cell_at_once(
    environment: Environment, cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/deadly.py").write_text("import os; os._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setattr(launching, "_IMPORT_TIMEOUT", 20.0)
    target = cell("raises", environment("pass"))
    job = replace(job_of(target), modules=("deadly",))
    server = launching.Server(job.python, _PROGRAM, (), for_device(Device.CPU, 1, on_stack=False), tmp_path / "log")
    with pytest.raises(launching.ServerGoneError, match=r" 7$"):
        server.launch(job, RunFolders(tmp_path / "cell", tmp_path))
    server.close()


DAEMON = """\
if os.fork() == 0:
    if os.fork() == 0:
        with open({file!r}, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()"""


def test_the_end_of_a_server_is_noticed_although_a_daemon_keeps_its_channel(
    environment: Environment, cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_POLL", 0.2)
    python = environment(DAEMON.format(file=str(tmp_path / "daemon")))
    with Servers(tmp_path / "servers") as servers:
        target = cell("raises", python)
        assert judge(target, observe(target, tmp_path / "cell", servers=servers)).verdict is Verdict.REPRODUCED
        left = psutil.Process(int((tmp_path / "daemon").read_text()))
        (server,) = servers._servers.values()
        os.kill(server.pid, signal.SIGKILL)
        server._listener.join(10)
        assert not server._listener.is_alive()
        left.wait(10)


_DRIVER = "static int on; int cuInit(void) { return !(on = 1); } int cuDeviceGetCount(int *count) { return 3 * !on; }"
"""The two functions of CUDA's driver API, where there is no GPU: 3 is CUDA_ERROR_NOT_INITIALIZED."""


@pytest.mark.skipif(shutil.which("cc") is None, reason="the stand-in for libcuda.so.1 needs a C compiler")
@pytest.mark.parametrize(("gpus", "imported"), [("0", "cuda False, plain True"), ("", "cuda True, plain True")])
def test_on_a_gpu_a_module_that_initialises_cuda_is_left_to_the_ranks(
    gpus: str, imported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", driver], input=_DRIVER, text=True, check=True)
    tmp_path.joinpath("starts_cuda.py").write_text("import ctypes\nassert ctypes.CDLL('libcuda.so.1').cuInit() == 0\n")
    tmp_path.joinpath("plain.py").write_text("")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(repros.__file__).parents[1])]))
    script = (
        "import sys; from repros.inside import warm; warm._import(['starts_cuda', 'plain']); "
        "print('cuda', 'starts_cuda' in sys.modules, end=', '); print('plain', 'plain' in sys.modules); "
        "assert warm.cuda_is_initialised() == ('starts_cuda' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.returncode) == (imported, 0), ended.stderr
