"""Ends what a runner leaves behind when it is killed itself: one small process per runner, which waits for its end.

    python -I -S reaper.py TOKEN

The runner holds the write end of the reaper's stdin and says over it which cells run. However the runner ends, SIGKILL
included, the pipe ends with it; then the reaper kills what is left of the cells, removes their workdir folders, and
ends. A reaper that was killed is replaced when the next cell starts.

What belongs to a runner is told by its token, which every process of its cells and its warm servers inherits in
`REPROS_RUNNER`. A rank forked by a warm server shows the server's environment, so it is found wherever it went, and
so is a daemon of a double fork. Sessions of running cells are told as well: they hold what wiped its environment. Who
did both, left the session and wiped the environment, escapes. Without `/proc` (macOS) no environment is read, and only
the process groups of the told sessions are ended.

The program is this module, standard library only, so that it starts in 20 ms from any interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

VARIABLE = "REPROS_RUNNER"
_PROC = Path("/proc")
_QUIET_LOOKS = 3
"""Looks in a row that find nothing; what was between fork and exec shows no token yet."""
_BETWEEN = 0.1
"""Seconds between two of them."""
_LOOKS = 100


class Reaper:
    """The runner's side: starts the process and tells it what runs."""

    def __init__(self) -> None:
        """Choose the token; the process starts with the first cell."""
        self.token = uuid.uuid4().hex
        self._cells: dict[str, int | None] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The reaper's process id, once there is one."""
        return self._process.pid if self._process else None

    def add_cell(self, workdir: Path, session: int | None = None) -> None:
        """Say that a cell begins, with its workdir folder, or that its main process runs, with its session.

        Raises:
            OSError: no process can be started.
        """
        with self._lock:
            self._cells[str(workdir)] = session
            if self._process is None or self._process.poll() is not None:
                self._start()
            self._send(str(workdir), session)

    def remove_cell(self, workdir: Path) -> None:
        """Say that nothing of the cell is left."""
        with self._lock:
            self._cells.pop(str(workdir), None)
            self._send(str(workdir), 0)

    def close(self) -> None:
        """Let the process have its last look, and go."""
        with self._lock:
            if self._process is not None:
                self._send("", None)
                self._close_pipe(self._process)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(5)

    def reset_after_fork(self) -> None:
        """Be a fork's copy: what the original started is not this process's, and its pipe must not stay open here."""
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
        for workdir, session in self._cells.items():
            self._send(workdir, session)

    def _send(self, workdir: str, session: int | None) -> None:
        pipe = self._process.stdin if self._process else None
        # A reaper that is gone is replaced at the next cell.
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
    """Be the reaper: listen until the runner is gone, then end what it left."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    cells: dict[str, int | None] = {}
    in_order = False
    for line in sys.stdin.buffer:
        try:
            workdir, session = json.loads(line)
        except ValueError:  # the runner died while it wrote
            continue
        if not workdir:
            in_order = True
        elif session == 0:
            cells.pop(workdir, None)
        else:
            cells[workdir] = session
    end(token, {session for session in cells.values() if session}, quiet_looks=1 if in_order else _QUIET_LOOKS)
    for workdir in cells:
        shutil.rmtree(workdir, ignore_errors=True)


def end(token: str, sessions: Iterable[int], quiet_looks: int = _QUIET_LOOKS) -> None:
    """Kill the runner's processes until none was found that many times in a row."""
    if not _PROC.is_dir():
        for session in sessions:
            with contextlib.suppress(OSError):
                os.killpg(session, signal.SIGKILL)
        return
    quiet = 0
    for _ in range(_LOOKS):
        found = list(_members(token, set(sessions)))
        quiet = 0 if found else quiet + 1
        if quiet >= quiet_looks:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_BETWEEN)


def _members(token: str, sessions: set[int]) -> Iterator[int]:
    """Yield the processes that bear the token or are in one of the sessions; zombies have no environment left."""
    mark = f"{VARIABLE}={token}".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state, _, _, session = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:4]
            if state in "ZX":
                continue
            if int(session) in sessions or mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


if __name__ == "__main__":
    main(sys.argv[1])
