"""What an untrusted script cannot do: tokens, network, files, other processes, and limits."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from repros.model import cache
from repros.scripts.try_.environ import script_environ
from tests.scripts.try_.conftest import PROBE, SANDBOX, Try, Write

pytestmark = pytest.mark.usefixtures("each_way")
needs_files = pytest.mark.skipif(not SANDBOX.files, reason="this system has no Landlock")
needs_system = pytest.mark.skipif(not SANDBOX.system, reason="this system lets nobody make a mount namespace")
needs_calls = pytest.mark.skipif(not SANDBOX.calls, reason="this system has no filter for calls")
needs_network = pytest.mark.skipif(not SANDBOX.network, reason="this system lets nobody make a network namespace")


def test_no_token_is_in_the_environment(try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HF_TOKEN",
        "GITHUB_ACTOR",
        "AWS_PROFILE",
        "MY_API_KEY",
        "DB_PASSWORD",
        "SSH_AUTH_SOCK",
        "COMPANY_PAT",
    ):
        monkeypatch.setenv(name, "confidential")
    monkeypatch.setenv("PYTHONPATH", "/confidential")
    monkeypatch.setenv("TORCH_LOGS", "recompiles")
    write("show.py", "import json, os\nprint(json.dumps(dict(os.environ)))\n")
    ended = try_here("show.py", "--json")
    assert "confidential" not in ended.written
    given = json.loads(ended.written)
    assert given["TORCH_LOGS"] == "recompiles"
    assert Path(given["HOME"]).parent == Path(given["TMPDIR"]).parent
    assert Path(given["HOME"]).is_relative_to("/tmp")  # noqa: S108 - its own folder there
    assert not Path(given["HOME"]).exists()


def test_places_and_secrets_of_kept_kinds_stay_out(tmp_path: Path) -> None:
    given = {
        **dict.fromkeys(("TORCH_HOME", "TRITON_CACHE_DIR", "PIP_INDEX_URL"), "x"),
        **dict.fromkeys(("TORCH_HUB_TOKEN", "REPROS_COOKIE", "REPROS_SSH", "REPROS_PWD"), "x"),
        "TOKENIZERS_PARALLELISM": "false",
        "https_proxy": "http://me:word@host",
        "no_proxy": "localhost",
    }
    kept = script_environ(given, tmp_path, network=True, gpus=None)
    assert kept.keys() & given.keys() == {"TOKENIZERS_PARALLELISM", "no_proxy"}
    assert "HF_HUB_OFFLINE" not in kept
    without = script_environ(given, tmp_path, network=False, gpus=None)
    assert without.keys() & given.keys() == {"TOKENIZERS_PARALLELISM"}
    assert (without["HF_HUB_OFFLINE"], without["GLOO_SOCKET_IFNAME"]) == ("1", "lo")


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@needs_network
def test_there_is_no_network_unless_it_is_given(try_here: Try, write: Write, server: int) -> None:
    write("connect.py", f"import socket\nsocket.create_connection(('127.0.0.1', {server}), 5).close()\n")
    ended = try_here("connect.py")
    assert ended.code == 1
    assert "ConnectionRefusedError: [Errno 111] Connection refused" in ended.out  # of its own loopback device
    assert "no network" in " ".join(ended.err.split())
    ended = try_here("connect.py", "--network")
    assert (ended.code, ended.out.partition(" after ")[0]) == (0, "current clean")
    assert "network" not in ended.err


@needs_network
def test_the_loopback_device_is_there(try_here: Try, write: Write) -> None:
    write(
        "talk.py",
        """
        import socket
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        print([name for _, name in socket.if_nameindex()])
        """,
    )
    assert try_here("talk.py", "--json").written == "['lo']\n"


@needs_files
def test_the_user_s_files_and_processes_are_out_of_reach(try_here: Try, write: Write, here: Path) -> None:
    (here / "diary.txt").write_text("dear diary", "utf-8")
    write(
        "pry.py",
        f"""
        import os, pathlib
        def attempt(act):
            try:
                print("done", act())
            except OSError as error:
                print(error.strerror)
        attempt(lambda: pathlib.Path({str(here / "diary.txt")!r}).read_text())
        attempt(lambda: pathlib.Path({str(here / "diary.txt")!r}).unlink())
        attempt(lambda: pathlib.Path({str(here / "new.txt")!r}).write_text("x"))
        attempt(lambda: pathlib.Path("/proc/{os.getpid()}/environ").read_bytes())
        attempt(lambda: pathlib.Path("own.txt").write_text("four"))
        attempt(lambda: pathlib.Path.home().joinpath("own.txt").write_text("four"))
        """,
    )
    written = try_here("pry.py", "--json").written.splitlines()
    refused = {"Permission denied", "Read-only file system", "No such file or directory"}  # of another namespace
    assert {*written[:4]} <= refused
    assert written[4:] == ["done 4"] * 2
    assert (here / "diary.txt").read_text("utf-8") == "dear diary"


@needs_system
def test_modes_owners_and_times_of_other_files_stay(try_here: Try, write: Write, here: Path) -> None:
    diary = here / "diary.txt"
    diary.write_text("dear diary", "utf-8")
    before = diary.stat()
    write(
        "touch.py",
        PROBE
        + f"""
attempt(lambda: os.chmod({str(diary)!r}, 0o777))
attempt(lambda: os.utime({str(diary)!r}, (1, 1)))
attempt(lambda: os.chown({str(diary)!r}, os.getuid(), os.getgid()))
attempt(lambda: os.setxattr({str(diary)!r}, "user.a", b"b"))
attempt(lambda: os.stat({str(diary)!r}))
attempt(lambda: os.chmod("/usr/bin/env", 0o755))
attempt(lambda: open("/dev/x", "w"))
open("own.txt", "w").close()
attempt(lambda: os.chmod("own.txt", 0o700))
""",
    )
    absent, read_only = "No such file or directory", "Read-only file system"
    written = try_here("touch.py", "--json").written.splitlines()
    assert written == [absent] * 5 + [read_only] + written[6:7] + ["done None"]
    assert written[6] in {read_only, "Permission denied"}
    after = diary.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        *(before.st_mode, before.st_mtime_ns, before.st_ctime_ns),
    )


@needs_system
def test_terminals_and_shared_memory_of_others_are_out_of_reach(try_here: Try, write: Write) -> None:
    controller, terminal = os.openpty()
    segment = SysvSegment()
    shared = shared_memory.SharedMemory(create=True, size=8)
    write(
        "pry.py",
        PROBE
        + f"""
import ctypes
attempt(lambda: os.open({os.ttyname(terminal)!r}, os.O_RDWR))
attempt(lambda: os.open("/dev/shm/{shared.name}", os.O_RDWR))
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget({segment.key}, 0, 0), os.strerror(ctypes.get_errno()))
from multiprocessing import shared_memory
shared_memory.SharedMemory(create=True, size=8).unlink()
print(os.ttyname(os.openpty()[1]))
""",
    )
    written = try_here("pry.py", "--json").written.splitlines()
    shared.close()
    shared.unlink()
    segment.remove()
    os.close(controller)
    os.close(terminal)
    assert written == ["No such file or directory"] * 2 + ["-1 No such file or directory", "/dev/pts/0"]


class SysvSegment:
    """A segment of System V shared memory."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.key = 0x72657072
        self._id = self._libc.shmget(self.key, 16, 0o1600)
        assert self._id >= 0, os.strerror(ctypes.get_errno())

    def remove(self) -> None:
        """Remove it."""
        assert self._libc.shmctl(self._id, 0, None) == 0


@needs_calls
def test_calls_that_reach_beyond_the_process_are_refused(try_here: Try, write: Write) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        before = resource.prlimit(other.pid, resource.RLIMIT_NOFILE)
        write(
            "reach.py",
            PROBE
            + f"""
import resource, socket
attempt(lambda: resource.prlimit({other.pid}, resource.RLIMIT_NOFILE, (9, 9)))
attempt(lambda: os.setpriority(os.PRIO_PROCESS, {other.pid}, 19))
attempt(lambda: socket.socket(socket.AF_VSOCK))
attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)))
attempt(lambda: socket.socket().close())
""",
        )
        written = try_here("reach.py", "--json").written.splitlines()
        assert written == ["Operation not permitted"] * 3 + ["done None"] * 3
        assert resource.prlimit(other.pid, resource.RLIMIT_NOFILE) == before
        other.communicate(b"\n")


@needs_system
@pytest.mark.skipif(os.geteuid() != 0, reason="what only root may read, this user cannot")
def test_keys_of_the_system_look_empty(try_here: Try, write: Write) -> None:
    write("peek.py", PROBE + 'attempt(lambda: len(open("/etc/shadow").read()))\n')
    assert try_here("peek.py", "--json").written.strip() in {"done 0", "Permission denied"}


@needs_files
@needs_system
def test_a_socket_of_another_program_has_no_path(try_here: Try, write: Write, here: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        listening.listen()
        address = str(here / "s")
        write("call.py", PROBE + f"import socket\nattempt(lambda: socket.socket(1).connect({address!r}))\n")
        assert try_here("call.py", "--json").written == "No such file or directory\n"


@needs_files
@pytest.mark.parametrize("flags", ["os.O_RDONLY", "os.O_RDWR"])
def test_a_lock_of_the_cache_cannot_be_held(
    flags: str, try_here: Try, write: Write, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a file is enough to lock it, and every other command would wait as long as the script lives."""
    monkeypatch.setenv(cache.VARIABLE, str(here / "cache"))
    lock, accelerator = here / "cache/environments/current.lock", here / "cache/sim/built.so"
    for file in (lock, accelerator):
        file.parent.mkdir(parents=True)
        file.write_text("x")
    write(
        "lock.py",
        PROBE
        + f"""
import fcntl
attempt(lambda: fcntl.flock(os.open({str(lock)!r}, {flags}), fcntl.LOCK_EX | fcntl.LOCK_NB))
attempt(lambda: open({str(accelerator)!r}).read())
""",
    )
    refused, read = try_here("lock.py", "--json", "--no-watch").written.splitlines()
    assert (refused in {"Permission denied", "No such file or directory"}, read) == (True, "done x")
