"""The reaper: a small process, one per runner, that ends the processes of a killed runner.

    python -I -S reaper.py TOKEN

The runner keeps the write end of the reaper's stdin open and sends the jobs that run. However the runner ends, SIGKILL
included, the pipe ends with it; then the reaper kills the remaining processes of the jobs, removes their working
folders, and ends. If the reaper itself is killed, the next job to start starts a new one.

A runner's processes are recognised by its token, which every process of its jobs and its warm servers inherits in
`REPROS_RUNNER`. A rank forked by a warm server shows the server's environment, so it is found in any session, and so is
a daemon started by a double fork. The runner sends the sessions of its running jobs as well, to find processes that
cleared their environment. A process that did both, left the session and cleared its environment, escapes. Without
`/proc` (macOS) the reaper cannot read environments and ends only the process groups of those sessions.

The program is this module, which loads `removal.py` by its path. It uses the standard library only and starts in 20 ms
from any interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

VARIABLE = "REPROS_RUNNER"
_PROC = Path("/proc")
_EMPTY_SEARCHES = 3
"""Searches in a row that must find no process: a process between fork and exec does not show the token yet."""
_PERIOD = 0.1
"""Seconds between two searches."""
_EXIT_TIMEOUT = 2
"""Seconds that the runner waits for the reaper to end; the reaper continues without the runner."""
_MOST_SEARCHES = 100
_PART = 16 * 1024
"""Bytes of a file that one call reads."""
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of linux/sched.h, in `flags` of proc(5): a thread of the kernel, which has no environment."""


class Reaper:
    """The runner's side: starts the reaper process and sends it the running jobs."""

    def __init__(self) -> None:
        """Choose the token; the process starts with the first job."""
        self.token = uuid.uuid4().hex
        self._runs: dict[str, int | None] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The reaper's process id; None before its start."""
        return self._process.pid if self._process else None

    def add_run(self, workdir: Path, session: int | None = None) -> None:
        """Report the start of a run, by its working folder; report again once its main process has a session.

        Raises:
            OSError: no process can be started.
        """
        with self._lock:
            self._runs[str(workdir)] = session
            if self._process is None or self._process.poll() is not None:
                self._start()
            self._send(str(workdir), session)

    def remove_run(self, workdir: Path) -> None:
        """Report that no process of a run is left."""
        with self._lock:
            self._runs.pop(str(workdir), None)
            self._send(str(workdir), 0)

    def close(self) -> None:
        """Let the process search a last time and end; wait for it."""
        with self._lock:
            if self._process is not None:
                self._send("", None)
                self._close_pipe(self._process)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_EXIT_TIMEOUT)

    def reset_after_fork(self) -> None:
        """Start anew in a forked child: the reaper belongs to the parent, and its pipe must not stay open here."""
        if self._process is not None:
            self._close_pipe(self._process)
            self._process.returncode = 0
        self.__init__()  # type: ignore[misc]

    def _start(self) -> None:
        if self._process is not None:
            self._close_pipe(self._process)
        # An empty environment: no other runner's token, and nothing that changes the interpreter.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, self.token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)  # a stopped one reads nothing
        for workdir, session in self._runs.items():
            self._send(workdir, session)

    def _send(self, workdir: str, session: int | None) -> None:
        pipe = self._process.stdin if self._process else None
        # A reaper that has ended is replaced at the next run.
        with contextlib.suppress(OSError):
            if pipe is not None and not pipe.closed:
                pipe.write((json.dumps([workdir, session]) + "\n").encode())
                pipe.flush()

    @staticmethod
    def _close_pipe(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()


of_this_runner = Reaper()
atexit.register(of_this_runner.close)
os.register_at_fork(after_in_child=of_this_runner.reset_after_fork)


def main(token: str) -> None:
    """Run the reaper: read stdin until the runner has ended, then end its processes."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    runs: dict[str, int | None] = {}
    is_clean_exit = False
    for line in sys.stdin.buffer:
        try:
            workdir, session = json.loads(line)
        except ValueError:  # the runner died while it wrote
            continue
        if not workdir:
            is_clean_exit = True
        elif session == 0:
            runs.pop(workdir, None)
        else:
            runs[workdir] = session
    sessions = {session for session in runs.values() if session}
    end(token, sessions, empty_searches=1 if is_clean_exit else _EMPTY_SEARCHES)
    if runs:
        # By its file: this program has no package.
        remove_tree = runpy.run_path(str(Path(__file__).with_name("removal.py")))["remove_tree"]
        for workdir in runs:
            remove_tree(Path(workdir))


def end(token: str, sessions: Iterable[int], empty_searches: int = _EMPTY_SEARCHES) -> None:
    """Kill the runner's processes until `empty_searches` searches in a row have found none."""
    if not _PROC.is_dir():
        for session in sessions:
            with contextlib.suppress(OSError):
                os.killpg(session, signal.SIGKILL)
        return
    empty = 0
    for _ in range(_MOST_SEARCHES):
        pids = list(members(f"{VARIABLE}={token}", set(sessions)))
        empty = 0 if pids else empty + 1
        if empty >= empty_searches:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PERIOD)


def members(variable: str, sessions: Container[int]) -> Iterator[int]:
    """Yield the pids of processes with a variable in their environment, or in one of the sessions, except zombies.

    It runs several times for each job, over all processes, so it reads two files of each and creates no objects.

    Args:
        variable: `NAME=value`.
        sessions: ids of sessions.
    """
    entry = os.fsencode(f"\0{variable}\0")
    for name in os.listdir(_PROC):  # noqa: PTH208 - names alone
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state, _, _, session, _, _, flags = _read(f"{_PROC}/{name}/stat").rpartition(b")")[2].split(None, 7)[:7]
            if state in b"ZX" or int(flags) & _KERNEL_THREAD:
                continue
            if int(session) in sessions or entry in b"\0%b\0" % _read(f"{_PROC}/{name}/environ"):
                yield int(name)


def _read(file: str) -> bytes:
    # One of hundreds: a file object, and what it asks of the file, would take as long as all else.
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(opened, _PART):
            content += part
        return content
    finally:
        os.close(opened)


if __name__ == "__main__":
    main(sys.argv[1])
