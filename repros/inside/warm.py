"""A server that has imported the heavy libraries once and forks the ranks of each cell.

    python -c 'from repros.inside import warm; warm.main()' MODULE [MODULE ...]

The server exchanges JSON lines with the engine over a socket, which is its stdin as it starts. Stdout and stderr are
its log, so what a `.pth` file or a library prints is no message:

- It first sends `{"ready": seconds}`, once everything is imported.
- The engine requests a cell by `{"id", "argv", "cwd", "environ", "ranks", "log"}`. The server answers `{"id", "pid"}`
  when the cell's leader runs and `{"id", "status"}` (a wait status) when the leader has ended.
- The engine requests further modules by `{"id", "import"}`. The server answers `{"id", "imported"}`.

When the requests end, as they do when the engine dies, the server ends every cell and itself.

    server ── leader (in its own session, acts as torchrun's agent) ── rank 0, rank 1, ...

Ranks get torchrun's environment variables, run the script as `__main__` and leave through the interpreter's exit
handlers. The leader is a child subreaper: a process that a rank leaves behind, even a daemon started by a double fork,
becomes the leader's child, and the leader ends it. The server is a subreaper too, for leaders that are killed. The
parent-death signal ends a leader with its server, and a rank with its leader. CUDA is never initialised here, since it
does not survive a fork: a module whose import initialises it is left to the ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any

from repros.inside.leader import lead, run_and_leave
from repros.inside.processes import become_subreaper, kill_children, kill_session
from repros.simulated_gpus.import_hooks import before_import

_NOT_INITIALISED = 3
"""CUDA_ERROR_NOT_INITIALIZED in cuda.h."""


def main() -> None:
    """Import the modules that the command line names, then serve until the requests end."""
    started = time.monotonic()
    channel = _private_channel()
    become_subreaper()
    _import(sys.argv[1:])
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    server = _Server(channel, (channel, wake, woken))
    server.say({"ready": round(time.monotonic() - started, 3)})
    server.serve(wake)


def _import(names: list[str]) -> None:
    """Import modules, and exempt all objects so far from garbage collection, here and in what is forked.

    A collection writes into the head of every object that it looks at, and each page that a rank writes to is copied:
    14,000 pages for torch 2.1 with Lightning, 140 ms of processor time. Module-level objects are never garbage.
    """
    gc.disable()
    try:
        for name in names:
            if _on_gpus() and not _leaves_cuda_alone(name):
                continue
            try:
                importlib.import_module(name)
            except Exception as error:
                traceback.print_exc()
                _raise_when_imported(name, error)
    finally:
        gc.freeze()
        gc.enable()


def _on_gpus() -> bool:
    """Return whether the ranks have real GPUs, which the engine names; simulated ones have no such variable."""
    return bool(os.environ.get("CUDA_VISIBLE_DEVICES"))


def _leaves_cuda_alone(name: str) -> bool:
    """Return whether CUDA is still uninitialised after a module's import, which a forked child tries.

    bitsandbytes asks for the GPU's capability when it is imported: each rank that was forked afterwards could not use
    the GPU. A child that crashes is one, too, that the ranks have to meet by themselves.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
            status = int(cuda_is_initialised())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def cuda_is_initialised() -> bool:
    """Return whether this process has called `cuInit`, through whichever library.

    Source: the CUDA driver API's `cuDeviceGetCount` returns CUDA_ERROR_NOT_INITIALIZED before `cuInit`.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return bool(driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != _NOT_INITIALISED)


def _raise_when_imported(name: str, error: Exception) -> None:
    """Let the script meet the error of the server's own import, so that it is recorded and judged.

    A second import might raise another one: torch 2.15 refuses to be initialised twice in a process.
    """

    def raise_again(_: object) -> None:
        _raise_when_imported(name, error)
        raise error

    before_import(name, raise_again)


class _Server:
    """The running leaders, and the socket for messages with the engine."""

    def __init__(self, channel: int, private: tuple[int, ...]) -> None:
        self.channel = channel
        self.private = private
        self.leaders: dict[int, int] = {}

    def say(self, answer: dict[str, Any]) -> None:
        """Send one answer."""
        os.write(self.channel, (json.dumps(answer) + "\n").encode())

    def serve(self, wake: int) -> None:
        """Start a leader for each request and report each that ended, until the requests end."""
        pending = b""
        while True:
            readable, _, _ = select.select([self.channel, wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
                self.reap()
            if self.channel not in readable:
                continue
            chunk = os.read(self.channel, 1 << 16)
            if not chunk:
                break
            pending += chunk
            *lines, pending = pending.split(b"\n")
            for line in lines:
                request = json.loads(line)
                if "import" in request:
                    _import(request["import"])
                    self.say({"id": request["id"], "imported": len(request["import"])})
                else:
                    self.start(request)
        for pid in self.leaders:
            kill_session(pid)
        kill_children()

    def start(self, request: dict[str, Any]) -> None:
        """Fork the leader of a cell."""
        pid = os.fork()
        if pid == 0:
            for descriptor in self.private:
                os.close(descriptor)
            run_and_leave(functools.partial(lead, request))
        self.leaders[pid] = request["id"]
        self.say({"id": request["id"], "pid": pid})

    def reap(self) -> None:
        """Report the leaders that ended; end the orphans that one of them may have left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            if pid in self.leaders:
                id_ = self.leaders.pop(pid)
                # Before the answer, which tells the engine that the cell has ended.
                kill_children(but=self.leaders)
                self.say({"id": id_, "status": status})
        kill_children(but=self.leaders)


def _private_channel() -> int:
    """Reserve stdin, a socket, for messages with the engine; what reads stdin from here on finds nothing."""
    channel = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel
