"""A server that imports the heavy libraries once and forks the ranks of each job.

    python -c 'from repros.inside import warm; warm.main()' MODULE [MODULE ...]

The server exchanges JSON lines with the engine over a socket, its initial stdin. Stdout and stderr are its log, so
output of a `.pth` file or a library is not mistaken for a message:

- After its imports it sends `{"ready": seconds}`.
- The engine requests a job by `{"id", "argv", "cwd", "environ", "ranks", "log"}`. The server replies `{"id", "pid"}`
  when the job's leader runs and `{"id", "status"}` (a wait status) when the leader has ended.
- The engine requests further imports by `{"id", "import"}`. The server replies `{"id", "imported"}`.

At the end of the requests, which is also the death of the engine, the server kills all jobs and exits.

    server ── leader (in its own session, acts as torchrun's agent) ── rank 0, rank 1, ...

Ranks get torchrun's environment variables, run the script as `__main__` and exit through the interpreter's exit
handlers. The leader is a child subreaper: an orphan of a rank, even a daemon from a double fork, becomes the leader's
child, and the leader kills it. The server is a subreaper too, for leaders that are killed. The parent-death signal
kills a leader with its server, and a rank with its leader. CUDA is never initialised in the server, since it does not
survive a fork: modules whose import initialises it are imported by the ranks.
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
import typing
import weakref
from collections.abc import Callable
from typing import Any

from repros.inside.leader import lead, run_and_exit
from repros.inside.processes import become_subreaper, kill_children, kill_session, use_huge_pages
from repros.simulated_gpus.import_hooks import before_import

_NOT_INITIALISED = 3
"""`CUDA_ERROR_NOT_INITIALIZED` of cuda.h."""
_JOBS_BEFORE = 20
"""Jobs before the server moves its memory to huge pages, which takes as much processor time as some twenty jobs save.

With torch 2.15 and Lightning, 430 MB, a fork and its end then take 10 ms of processor time in the place of 23. Memory
of later imports is moved before the next job with a multiple of twenty as its number.
"""


def main(lead: Callable[[dict[str, Any]], int] = lead) -> None:
    """Import the modules named on the command line, then serve requests until their end.

    Args:
        lead: leads a job in a forked process; returns its exit code, or exits.
    """
    started = time.monotonic()
    channel = _private_channel()
    become_subreaper()
    _import(sys.argv[1:])
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    server = _Server(channel, (channel, wake, woken), lead)
    server.send({"ready": round(time.monotonic() - started, 3)})
    server.serve(wake)


def _import(names: list[str]) -> None:
    """Import modules, then exempt all existing objects from garbage collection, here and in forked processes.

    A collection writes to the header of every object that it visits, and each page that a rank writes to is copied:
    14,000 pages for torch 2.1 with Lightning, 140 ms of CPU time. Module-level objects are never garbage.
    """
    gc.disable()
    try:
        for name in names:
            if _on_gpus() and not _keeps_cuda_uninitialised(name):
                continue
            try:
                importlib.import_module(name)
            except Exception as error:
                traceback.print_exc()
                _raise_when_imported(name, error)
    finally:
        _keep_at_exit()
        gc.freeze()
        gc.enable()


def _keep_at_exit() -> None:
    """Keep what the imports have created at a rank's exit: it ends with the process.

    torch would remove the operators of its libraries one by one: 10,000 copied pages, 60 ms of processor time.
    nanobind would empty the caches of `typing`, for its check of leaks: 1,000 pages.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        alive = finalizer.peek()
        if alive is not None and alive[1].__module__ == "torch.library":
            finalizer.detach()
    typing._cleanups.clear()  # type: ignore[attr-defined]


def _on_gpus() -> bool:
    """Return whether the ranks have real GPUs; for simulated ones the engine does not set this variable."""
    return bool(os.environ.get("CUDA_VISIBLE_DEVICES"))


def _keeps_cuda_uninitialised(name: str) -> bool:
    """Return whether CUDA stays uninitialised during a module's import, which a forked child tries out.

    bitsandbytes queries the GPU's capability at import, after which forked ranks could not use the GPU. A module whose
    import crashes the child is left to the ranks as well.
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
    """Raise the error of the server's import again when the script imports the module, so that it is recorded.

    A second import might raise another error: torch 2.15 refuses to be initialised twice in a process.
    """

    def raise_again(_: object) -> None:
        _raise_when_imported(name, error)
        raise error

    before_import(name, raise_again)


class _Server:
    """The running leaders, and the socket to the engine."""

    def __init__(self, channel: int, private: tuple[int, ...], lead: Callable[[dict[str, Any]], int]) -> None:
        self.channel = channel
        self.private = private
        self.lead = lead
        self.leaders: dict[int, int] = {}
        self.jobs = 0
        self.has_imported = True
        """Whether there were imports since the memory was last moved to huge pages."""

    def send(self, message: dict[str, Any]) -> None:
        """Send one message to the engine."""
        os.write(self.channel, (json.dumps(message) + "\n").encode())

    def serve(self, wake: int) -> None:
        """Start a leader for each request and report each ended leader, until the end of the requests."""
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
                    self.has_imported = True
                    self.send({"id": request["id"], "imported": len(request["import"])})
                else:
                    self.start(request)
        for pid in self.leaders:
            kill_session(pid)
        kill_children()

    def start(self, request: dict[str, Any]) -> None:
        """Fork the leader of a job."""
        self.jobs += 1
        if self.has_imported and self.jobs % _JOBS_BEFORE == 0:
            use_huge_pages()
            self.has_imported = False
        pid = os.fork()
        if pid == 0:
            for descriptor in self.private:
                os.close(descriptor)
            os.setsid()
            run_and_exit(functools.partial(self.lead, request))
        self.leaders[pid] = request["id"]
        self.send({"id": request["id"], "pid": pid})

    def reap(self) -> None:
        """Report the ended leaders, and kill the orphans of killed ones."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            if pid in self.leaders:
                id_ = self.leaders.pop(pid)
                # Before the reply, which tells the engine that the job has ended.
                kill_children(keep=self.leaders)
                self.send({"id": id_, "status": status})
        kill_children(keep=self.leaders)


def _private_channel() -> int:
    """Return a duplicate of stdin, the socket to the engine, and redirect stdin from the null device."""
    channel = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return channel
