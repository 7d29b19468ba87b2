"""Stacks of real processes: what each request brings, and how what faulthandler writes is read."""

from __future__ import annotations

import faulthandler
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from repros.engine.launch import stacks
from repros.engine.launch.stacks import StackFrame
from repros.inside.recorder import STACKS_SIGNAL

SCRIPT = """
import faulthandler, sys, threading, time
faulthandler.register(int(sys.argv[1]), open(sys.argv[2], "a"), all_threads=True, chain=False)
def side_thread():
    time.sleep(60)
def begin():
    threading.Thread(target=side_thread, daemon=True).start()
    print("ready", flush=True)
    time.sleep(60)
begin()
"""

TEXT = """\
Thread 0x00007f0a3f7fe6c0 [tqdm-monitor] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 331 in wait
  File "/env/site-packages/tqdm/_monitor.py", line 60 in run

Thread 0x00007f0a3f7fe6c1 (most recent call first):
  <no Python frame>

Current thread 0x00007f0ae63dfb80 (most recent call first):
  File "/a folder/in it, "quoted"", line ??? in <module>
  ...
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[psutil.Process]:
    """A process with two threads that answers a request for its stacks as those of a cell do."""
    file = tmp_path / "stacks.txt"
    started = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(int(STACKS_SIGNAL)), str(file)], stdout=subprocess.PIPE, text=True
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        place = stacks.stacks_file(tmp_path, started.pid)
        place.parent.mkdir(parents=True)
        file.rename(place)
        yield psutil.Process(started.pid)
        started.kill()


def test_a_request_brings_its_own_text_alone(process: psutil.Process, tmp_path: Path) -> None:
    first, second = (stacks.take(tmp_path, {process.pid: process}) for _ in range(2))
    assert first.begins == {process.pid: 0}
    assert second.begins == {process.pid: len(first.texts[process.pid].encode())}
    for request in (first, second):
        side_thread, main = stacks.threads(request.texts[process.pid])
        assert [frame.function for frame in main] == ["begin", "<module>"]
        assert side_thread[0].function == "side_thread"


def test_a_stopped_process_brings_nothing(
    process: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "_TIMEOUT", 0.3)
    process.send_signal(signal.SIGSTOP)
    assert stacks.take(tmp_path, {process.pid: process}) == stacks.StackDump({process.pid: 0}, {})


LATE = """
import faulthandler, signal, sys, time
number = int(sys.argv[1])
faulthandler.register(number, open(sys.argv[2], "a"), all_threads=True, chain=False)
signal.pthread_sigmask(signal.SIG_BLOCK, [number])
print("ready", flush=True)
while number not in signal.sigpending():
    pass
until = time.monotonic() + 1
while time.monotonic() < until:
    pass
signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
time.sleep(60)
"""


def test_a_process_that_has_had_no_processor_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal reaches it a second late, while it runs, as on a machine whose processors are all in use."""
    monkeypatch.setattr(stacks, "_TIMEOUT", 0.1)
    file = tmp_path / "stacks.txt"
    command = [sys.executable, "-c", LATE, str(int(STACKS_SIGNAL)), str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as late:
        assert late.stdout is not None
        assert late.stdout.readline() == "ready\n"
        place = stacks.stacks_file(tmp_path, late.pid)
        place.parent.mkdir(parents=True)
        file.rename(place)
        dump = stacks.take(tmp_path, {late.pid: psutil.Process(late.pid)})
        late.kill()
    assert stacks.threads(dump.texts[late.pid])[-1][-1].function == "<module>"


def test_the_threads_of_a_text() -> None:
    assert stacks.threads(TEXT) == [
        (
            StackFrame("/usr/lib/python3.14/threading.py", "331", "wait"),
            StackFrame("/env/site-packages/tqdm/_monitor.py", "60", "run"),
        ),
        (),
        (StackFrame('/a folder/in it, "quoted"', "???", "<module>"),),
    ]


def test_this_python_writes_what_is_read(tmp_path: Path) -> None:
    with (tmp_path / "stacks.txt").open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    main = stacks.threads((tmp_path / "stacks.txt").read_text())[-1]
    assert main[0].is_in("launch/test_stacks.py")
    assert main[0].function == "test_this_python_writes_what_is_read"


def test_a_file_is_found_by_whole_folders() -> None:
    frame = StackFrame("/env/torch/distributed/distributed_c10d.py", "1", "barrier")
    assert frame.is_in("distributed/distributed_c10d.py")
    assert not frame.is_in("c10d.py")
