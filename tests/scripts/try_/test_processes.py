"""The processes of an untrusted script: none outlives it, none reaches another, and their shared memory is limited."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from repros.scripts.try_ import request, sandbox
from repros.scripts.try_.cgroup import memory_group
from repros.scripts.try_.inside import sandbox as inside
from repros.scripts.try_.inside.init import MAIN_PID
from repros.scripts.try_.sandbox import Limits
from tests.scripts.try_.conftest import PROBE, ROOT, SANDBOX, Try, Write

pytestmark = pytest.mark.usefixtures("each_way")
needs_system = pytest.mark.skipif(not SANDBOX.system, reason="this system lets nobody make a mount namespace")
needs_processes = pytest.mark.skipif(not SANDBOX.processes, reason="this system lets nobody make a PID namespace")


def living(mark: str) -> list[psutil.Process]:
    """Return the processes with a mark on their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(mark in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


ESCAPES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(100)  # MARK"], {})
    os._exit(0)
time.sleep(0.5)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_daemon_that_cleared_its_environment_is_ended(try_here: Try, write: Write, here: Path) -> None:
    write("escape.py", ESCAPES.replace("MARK", here.name))
    assert try_here("escape.py").code == 0
    assert living(here.name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_no_process(number: int, two_stacks: None, write: Write, here: Path) -> None:
    write("wait.py", ESCAPES.replace("MARK", here.name) + "\ntime.sleep(100)\n")
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from repros.engine import environments
from repros.cli.main import main
from repros.engine import environment
from repros.model import Device, Environment
environment.probe = lambda python, stack=None, **_: Environment(
    stack, Path(sys.executable), "3.11.9", {{"torch": "2.15.0"}}, {{Device.CPU: 2}}, stack=stack
)
environments.ensure = lambda stack, report_progress: Path(sys.executable)
sys.exit(main(["try", "wait.py", "--no-watch", "--ranks", "2"]))  # {here.name}
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=here, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 60
        while len(living(here.name)) < 3 and time.monotonic() < until:  # the command, and a daemon of each rank
            time.sleep(0.1)
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in err) == (128 + number, False)
    assert living(here.name) == []


@needs_processes
def test_other_processes_are_neither_seen_nor_reached(try_here: Try, write: Write) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        before = os.sched_getaffinity(other.pid), os.getpriority(os.PRIO_PROCESS, other.pid)
        write(
            "reach.py",
            PROBE
            + f"""
import signal
print(os.path.exists("/proc/{other.pid}/stat"), os.getpid(), os.readlink("/proc/self"))
attempt(lambda: os.kill({other.pid}, signal.SIGCONT))
attempt(lambda: os.sched_setaffinity({other.pid}, {{0}}))
attempt(lambda: os.sched_setscheduler({other.pid}, os.SCHED_BATCH, os.sched_param(0)))
attempt(lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt(lambda: os.kill(0, 0))
""",
        )
        written = try_here("reach.py", "--json").written.splitlines()
        assert (os.sched_getaffinity(other.pid), os.getpriority(os.PRIO_PROCESS, other.pid)) == before
        other.communicate(b"\n")
    assert written == [
        f"False {MAIN_PID} {MAIN_PID}",
        *["No such process"] * 3,
        "Operation not permitted",
        *["done None"] * 2,
    ]


@needs_processes
@pytest.mark.parametrize(
    ("end", "status", "signature"),
    [
        ("os._exit(7)", "exit", "exit 7"),
        ("os.kill(os.getpid(), 11)", "signal", "signal SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "signal", "signal SIGKILL"),
        ("try: os.kill(1, 9)\nexcept PermissionError: pass", "clean", None),
        ("raise ValueError('m')", "exception", "ValueError: m"),
    ],
)
def test_a_namespace_keeps_how_a_script_ends(
    end: str, status: str, signature: str | None, try_here: Try, write: Write
) -> None:
    write("end.py", f"import os\n{end}\n")
    found = try_here("end.py", "--json").stack
    assert (found["status"], found["signature"]) == (status, signature)


@needs_processes
def test_all_die_with_the_process_that_was_started(here: Path, each_way: str) -> None:
    """Whatever kills it: the engine's containment is not needed for that."""
    limits = Limits(60, 2**31, 2**30)
    settings = sandbox.find_sandbox(network=False).settings(limits, 1, [Path(sys.executable)], [here])
    assert bool(settings["bubblewrap"]) is (each_way == "bubblewrap")
    program = [str(sandbox.INTERPRETER), "-I", "-S", "-c", inside.PROGRAM, json.dumps(settings)]
    waits = [sys.executable, "-c", f"import os, time; os.fork(); os.write(1, b'1\\n'); time.sleep(90)  # {here.name}"]
    with subprocess.Popen([*program, *waits], cwd=here, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() + running.stdout.readline() == b"1\n1\n"
        assert len(living(here.name)) >= 2
        running.kill()
    until = time.monotonic() + 30
    while living(here.name) and time.monotonic() < until:
        time.sleep(0.05)
    assert living(here.name) == []


FORGES = """
import json, os, time
own = os.path.join(os.environ["REPROS_CELL"], "processes", str(os.getpid()))
events = [
    {"event": "start", "role": "rank", "rank": 7},
    {"event": "joined", "rank": 7, "world_size": 9},
    {"event": "interrupted", "signal": "SIGINT"},
    {"event": "finished", "code": 0},
]
with open(os.path.join(own, "events.jsonl"), "a") as file:
    for event in events:
        file.write(json.dumps({**event, "time": time.monotonic(), "pid": os.getpid()}) + "\\n")
"""


@needs_processes
@pytest.mark.parametrize(
    ("end", "status", "signature"),
    [
        ("os._exit(7)", "exit", "exit 7"),
        ("os.kill(os.getpid(), 9)", "signal", "signal SIGKILL"),
        ("events.clear()", "clean", None),
    ],
)
def test_how_a_script_ended_wins_over_what_it_says_of_itself(
    end: str, status: str, signature: str | None, try_here: Try, write: Write
) -> None:
    write("forge.py", FORGES + end)
    found = try_here("forge.py", "--json", "--no-watch").stack
    assert (found["status"], found["signature"], found["ranks"]) == (status, signature, found["ranks"][:1])


CHAIN = """
import os, time
def daemon(end):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
        os._exit(0)
for _ in range(4):
    daemon(time.monotonic() + 100)
time.sleep(100)
"""


@pytest.mark.parametrize("has_namespace", [pytest.param(True, marks=needs_processes), False])
def test_a_chain_of_daemons_ends_with_the_script(
    has_namespace: bool, try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_namespace:
        monkeypatch.setattr(request, "find_sandbox", lambda **_: replace(SANDBOX, processes=False, bubblewrap=None))
    write("chain.py", CHAIN)
    before = time.monotonic()
    found = try_here("chain.py", "--json", "--no-watch", "--timeout", "4").stack
    assert found["status"] == "time limit"
    assert time.monotonic() - before < 60  # it was still computing after ten minutes
    assert not [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


@needs_processes
@pytest.mark.parametrize(
    "take",
    [
        "held = mmap.mmap(-1, size); [held.write(bytes(2**20)) for _ in range(300)]",
        "held = os.memfd_create('x'); os.posix_fallocate(held, 0, size)",
        "held = mmap.mmap(-1, size); os.fork() or [held.write(bytes(2**20)) for _ in range(300)]",
    ],
)
def test_shared_memory_has_a_limit(take: str, try_here: Try, write: Write) -> None:
    write("hoard.py", f"import mmap, os, time\nsize = 300 << 20\n{take}\ntime.sleep(30)\n")
    found = try_here("hoard.py", "--memory", "200MB", "--json", "--no-watch").stack
    assert (found["status"], found["signature"]) == ("signal", "signal SIGKILL")
    assert found["last_lines"] == ["repros: ended, since its shared memory is larger than --memory allows"]


GROWS = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
size, private, anonymous, grows_down = 300 << 20, 2, 32, 256
start = libc.mmap(None, ctypes.c_size_t(size), 3, private | anonymous | grows_down, -1, 0)
for _ in range(4):
    ctypes.memset(start, 1, size)
    time.sleep(2)
"""


@needs_processes
def test_memory_that_grows_like_a_stack_has_a_limit(try_here: Try, write: Write) -> None:
    """It is more than --memory, and less than the cgroup's limit, which is twice as large."""
    write("grow.py", GROWS)
    found = try_here("grow.py", "--memory", "200MB", "--json", "--no-watch").stack
    assert (found["status"], found["signature"]) == ("signal", "signal SIGKILL")
    assert found["last_lines"] == ["repros: ended, since its private memory is larger than --memory allows"]


def has_cgroup() -> bool:
    with memory_group(2**30) as group:
        return group is not None


@needs_processes
@pytest.mark.skipif(not has_cgroup(), reason="this user cannot make a cgroup with a limit of memory here")
def test_a_cgroup_limits_the_memory_of_all_processes(try_here: Try, write: Write) -> None:
    """Each stays below its own limit."""
    write(
        "fork.py",
        """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                held = bytearray(100 << 20)
                held[::4096] = b"x" * len(held[::4096])
                time.sleep(20)
                os._exit(0)
        ended = [os.wait()[1] for _ in range(8)]
        raise SystemExit(sum(status == 9 for status in ended) or 0)
        """,
    )
    found = try_here("fork.py", "--memory", "150MB", "--json", "--no-watch").stack
    assert found["status"] in {"exit", "signal"}
    assert (
        "repros: ended, since its memory is larger than --memory allows, or than this machine has"
        in (found["last_lines"])
    )


@pytest.mark.skipif(not has_cgroup(), reason="this user cannot make a cgroup with a limit of memory here")
def test_a_cgroup_that_a_killed_command_left_is_removed() -> None:
    with memory_group(2**30) as group, memory_group(2**30) as young:
        assert group is not None
        assert young is not None
        os.utime(group, (1, 1))
        with memory_group(2**30):
            assert (group.exists(), young.exists()) == (False, True)


@needs_processes
def test_shared_memory_below_the_limit_counts_once(try_here: Try, write: Write) -> None:
    write(
        "share.py",
        """
        import mmap, os, time
        held = mmap.mmap(-1, 150 << 20)
        for _ in range(150):
            held.write(bytes(1 << 20))
        for _ in range(3):
            if os.fork() == 0:
                sum(held[::4096])  # it has mapped all of it, too
                time.sleep(1)
                os._exit(0)
        time.sleep(1.5)
        """,
    )
    assert try_here("share.py", "--memory", "200MB", "--json", "--no-watch").stack["status"] == "clean"


@needs_system
def test_files_in_shared_memory_have_a_limit(try_here: Try, write: Write) -> None:
    write("fill.py", "with open('/dev/shm/x', 'wb') as file:\n    for _ in range(300): file.write(bytes(2**20))\n")
    found = try_here("fill.py", "--memory", "200MB", "--json", "--no-watch").stack
    assert found["signature"] == "OSError: [Errno 28] No space left on device"
