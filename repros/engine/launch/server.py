"""One warm server on the engine's side: its process, the messages to and from it, and the leaders that it forks."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import psutil

from repros.engine.launch import containment
from repros.engine.launch.environ import for_run
from repros.engine.launch.job import Job, RunFolders
from repros.engine.launch.patience import wait_for_answer
from repros.inside import contract

T = TypeVar("T")

_IMPORT_TIMEOUT = 300.0
"""Seconds to wait for a server's imports."""
_FORK_TIMEOUT = 30.0
"""Seconds to wait for it to fork a leader; then it is killed, and the next job gets a new server."""
_REPORT_TIMEOUT = 10.0
"""Seconds to wait for its report that a leader has ended."""
_END_TIMEOUT = 2.0
"""Seconds to wait for a server to end its jobs and itself; one that is importing reads no requests."""
_POLL = 1.0
"""Seconds between two checks whether it lives."""
_UNINITIALISED = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Lets libraries search for a GPU at their import without initialising CUDA, which does not survive a fork."""


class ServerGoneError(OSError):
    """A warm server that ended or does not answer; only the jobs that ran on it are lost."""


class Leader:
    """A job's leader: the forked process that replaces a launcher; a :class:`repros.engine.launch.job.MainProcess`."""

    def __init__(self, pid: int, status: Future[int], server: subprocess.Popen[bytes]) -> None:
        self.pid = pid
        self._status = status
        self._server = server

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for its end; return whether it ended."""
        try:
            self._status.result(timeout)
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """Make sure that it has ended.

        Right after its fork it is still in the server's session, where containment does not find it: it may have been
        stopped there, or hang in a library's fork handler.

        Raises:
            ServerGoneError: the server does not report its end, and was killed.
        """
        if self.wait(_POLL):
            return
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if process.ppid() == self._server.pid:
                process.kill()
        if not self.wait(_REPORT_TIMEOUT):
            self._server.kill()
            self._status.result(_REPORT_TIMEOUT)

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(self._status.result())


class Server:
    """One warm server, and the messages to and from it."""

    def __init__(
        self,
        python: Path,
        program: str,
        modules: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        *,
        workdir: Path | None = None,
        report_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Start the server without waiting for its imports.

        Args:
            python: the interpreter of the environment under test.
            program: the server's own side, for `python -c`: it calls :func:`repros.inside.warm.main`.
            modules: what to import once.
            environ: its environment variables.
            log: the file for its stdout and stderr.
            workdir: its working folder; None: that of this process.
            report_progress: receives lines of progress while it does not answer.
        """
        self._name, self._report_progress = f"the process that imports the libraries of {python}", report_progress
        self._token = uuid.uuid4().hex
        self._imported = set(modules)
        self._channel, its_end = socket.socketpair()
        self._channel.settimeout(_IMPORT_TIMEOUT)
        try:
            with its_end, log.open("ab") as output:
                self._process = subprocess.Popen(
                    [str(python), "-c", program, *modules],
                    stdin=its_end.fileno(),
                    stdout=output,
                    stderr=output,
                    cwd=workdir,
                    env={**environ, contract.SERVER: self._token, **_UNINITIALISED},
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            raise
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._ready: Future[float] = Future()
        self._answers: dict[int, Future[int]] = {}
        self._statuses: dict[int, Future[int]] = {}
        self._listener = threading.Thread(target=self._listen, daemon=True, name=f"warm server {self.pid}")
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def launch(self, job: Job, folders: RunFolders) -> Leader:
        """Ask the server to fork the job's leader.

        Raises:
            ServerGoneError: the server ended, or did not answer in time.
        """
        try:
            self._wait_for(self._ready, _IMPORT_TIMEOUT)
            id_, status = next(self._ids), Future[int]()
            self._statuses[id_] = status
            request = {
                **job.request,
                "argv": job.arguments,
                "cwd": str(folders.workdir),
                "environ": for_run(job, folders),
                "ranks": job.ranks,
                "log": str(folders.log),
            }
            with self._lock:  # an import delays every later request
                self._import(job.modules)
                pid = self._ask(id_, request)
            return Leader(self._wait_for(pid, _FORK_TIMEOUT), status, self._process)
        except (OSError, TimeoutError) as error:
            self._process.kill()
            self._process.wait()  # then it is not `alive` for the next job
            raise ServerGoneError(f"the warm server {self.pid} does not answer: {error}") from error

    def ask_to_end(self) -> None:
        """Close the channel of requests, upon which the server ends its jobs and itself."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the server and every job that it still runs."""
        self.ask_to_end()
        if not self._ready.done():
            self._process.kill()  # it reads requests only after its imports
        try:
            self._process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def _wait_for(self, answer: Future[T], limit: float) -> T:
        """Return an answer of the server; raise OSError if it has ended, is stopped, or timed out."""
        return wait_for_answer(answer.result, self.pid, limit, self._name, self._report_progress)

    def _import(self, names: Sequence[str]) -> None:
        """Make the server import the modules that it lacks, and wait for that."""
        missing = [name for name in names if name not in self._imported]
        if missing:
            self._wait_for(self._ask(next(self._ids), {"import": missing}), _IMPORT_TIMEOUT)
            self._imported.update(missing)

    def _ask(self, id_: int, request: dict[str, Any]) -> Future[int]:
        """Send a request; return the future answer."""
        answer = self._answers[id_] = Future[int]()
        self._channel.sendall((json.dumps({"id": id_, **request}) + "\n").encode())
        return answer

    def _listen(self) -> None:
        """Receive the server's answers until it ends; then fail all pending futures."""
        try:
            for answer in self._received():
                if "ready" in answer:
                    self._ready.set_result(answer["ready"])
                elif "status" in answer:
                    self._statuses[answer["id"]].set_result(answer["status"])
                else:
                    self._answers[answer["id"]].set_result(answer.get("pid", 0))
        finally:
            self._fail_all()

    def _received(self) -> Iterator[dict[str, Any]]:
        """Yield the server's answers until it ends, even if a library's process keeps the channel open."""
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            while True:
                has_ended = not self.alive
                if not selector.select(_POLL):
                    if has_ended:
                        return
                    continue
                try:
                    chunk = self._channel.recv(1 << 16)
                except OSError:  # it was killed before it had read everything
                    return
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                yield from map(json.loads, lines)

    def _fail_all(self) -> None:
        """End a server that sends no more answers, with the processes it forked, and fail all pending futures."""
        try:
            code = self._process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code != 0:
            containment.end_all_with(contract.SERVER, self._token)
        gone = ServerGoneError(f"it ended with {code}")
        self._fail(gone)  # before the lock, which a thread that waits for an import holds
        with self._lock:
            self._channel.close()
        self._fail(gone)  # requests sent in between; later ones fail to be sent

    def _fail(self, error: ServerGoneError) -> None:
        waiting: list[Future[Any]] = [self._ready, *self._answers.values(), *self._statuses.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
