"""Launches cells through warm servers: processes that have imported the libraries once and fork the ranks.

One server per interpreter, device tier and number of devices (which the simulated accelerator fixes when it loads). It
is started when the first cell needs it, imports what further cells need as they come, and ends with its
:class:`Servers`, or with this process, whose death closes the pipe that the server reads. What happens inside is in
:mod:`repros.inside.warm`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from packaging.utils import canonicalize_name

from repros.engine.launch import containment
from repros.engine.launch.cold import arguments
from repros.engine.launch.environ import for_cell, for_device
from repros.engine.launch.supervise import CellDirs
from repros.model import Cell, Device

_START = "from repros_inside import warm; warm.main()"
_IMPORT_TIMEOUT = 300.0
"""Seconds that a server gets for its imports."""
_FORK_TIMEOUT = 30.0
"""Seconds that it gets to fork a leader; one that was stopped is ended then, and the next cell gets a new one."""
_SERVER_VARIABLE = "REPROS_SERVER"
_LATE_IMPORT = "torch._dynamo"
"""What torch and Lightning import when they first need it: at an optimizer's first step, in `Trainer.fit`.

Left to the ranks, it was 95 % of what a cell on torch 2.1 took: 190 modules, in every rank of every cell.
"""


_UNINITIALISED = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""A library that asks at its import whether there is a GPU must not initialise CUDA, which does not survive a fork."""


class ServerGoneError(OSError):
    """A warm server that ended or does not answer; it costs the cells that ran on it, no more."""


class Leader:
    """A cell's leader: the forked process that takes the place of a launcher."""

    def __init__(self, pid: int, status: Future[int]) -> None:
        """Wrap a leader's pid and its future wait status."""
        self.pid = pid
        self._status = status

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for its end; return whether it ended."""
        try:
            self._status.result(timeout)
        except TimeoutError:
            return False
        return True

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(self._status.result())


class Server:
    """One warm server and the conversation with it."""

    def __init__(self, python: Path, device: Device, processes: int, modules: Sequence[str], log: Path) -> None:
        """Start the server; it is not waited for.

        Args:
            python: the interpreter of the environment under test.
            device: the tier that its cells run on.
            processes: how many devices its cells see.
            modules: what to import once.
            log: what its stdout and stderr go to.
        """
        self._mark = uuid.uuid4().hex
        self._imported = set(modules)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(python), "-c", _START, *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=for_device(device, processes) | {_SERVER_VARIABLE: self._mark} | _UNINITIALISED,
                start_new_session=True,
            )
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

    def launch(self, cell: Cell, dirs: CellDirs) -> Leader:
        """Have the cell's leader forked.

        Raises:
            ServerGoneError: the server ended, or did not answer in time.
        """
        try:
            self._ready.result(_IMPORT_TIMEOUT)
            id_, status = next(self._ids), Future[int]()
            self._statuses[id_] = status
            request = {
                "argv": arguments(cell),
                "cwd": str(dirs.workdir),
                "environ": for_cell(cell, dirs.folder, dirs.workdir, dirs.log),
                "ranks": cell.processes,
                "log": str(dirs.log),
            }
            with self._lock:  # an import holds up whatever is asked after it
                self._import(modules_of(cell))
                pid = self._ask(id_, request)
            return Leader(pid.result(_FORK_TIMEOUT), status)
        except (OSError, TimeoutError) as error:
            self._process.kill()
            self._process.wait()  # so that the next cell does not take it for alive
            raise ServerGoneError(f"the warm server {self.pid} does not answer: {error}") from error

    def close(self) -> None:
        """End the server and every cell that it still runs."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if not self._ready.done():
            self._process.kill()  # it would notice only after its imports
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def _import(self, names: Sequence[str]) -> None:
        """Have the server import what it has not yet."""
        missing = [name for name in names if name not in self._imported]
        if missing:
            self._ask(next(self._ids), {"import": missing}).result(_IMPORT_TIMEOUT)
            self._imported.update(missing)

    def _ask(self, id_: int, request: dict[str, Any]) -> Future[int]:
        """Send a request; return its answer to come."""
        assert self._process.stdin is not None
        answer = self._answers[id_] = Future[int]()
        self._process.stdin.write((json.dumps({"id": id_, **request}) + "\n").encode())
        self._process.stdin.flush()
        return answer

    def _listen(self) -> None:
        """Take the server's answers until there are no more."""
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                answer = json.loads(line)
                if "ready" in answer:
                    self._ready.set_result(answer["ready"])
                elif "status" in answer:
                    self._statuses[answer["id"]].set_result(answer["status"])
                else:
                    self._answers[answer["id"]].set_result(answer.get("pid", 0))
        if self._process.wait() != 0:
            containment.end_marked(_SERVER_VARIABLE, self._mark)
        with self._lock, contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        gone = ServerGoneError(f"it ended with {self._process.returncode}")
        waiting: list[Future[Any]] = [self._ready, *self._answers.values(), *self._statuses.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(gone)


class Servers:
    """The warm servers of one journey, by what they are for; a context manager that ends them all."""

    def __init__(self, logs: Path) -> None:
        """Take the folder for the servers' logs."""
        self._logs = logs
        self._servers: dict[tuple[Path, Device, int], Server] = {}
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Return itself; servers start when they are needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every server."""
        self.close()

    def close(self) -> None:
        """End every server and what it still runs; there will be no further ones."""
        with self._lock:
            self._closed = True
        for server in self._servers.values():
            server.close()

    def launch(self, cell: Cell, dirs: CellDirs) -> Leader:
        """Have the cell launched by the server that is for it, started anew if it is gone."""
        key = (cell.environment.python, cell.device, cell.processes)
        with self._lock:
            if self._closed:
                raise ServerGoneError("no server is started any more")
            server = self._servers.get(key)
            if server is None or not server.alive:
                self._logs.mkdir(parents=True, exist_ok=True)
                log = self._logs / f"{cell.environment.name.replace('/', '-')}-{cell.device}-{cell.processes}.log"
                server = self._servers[key] = Server(*key, modules_of(cell), log)
        return server.launch(cell, dirs)


def modules_of(cell: Cell) -> list[str]:
    """Return what a cell imports: what its script depends on and the environment has, and what that imports late."""
    names = [canonicalize_name(requirement.name) for requirement in cell.repro.dependencies]
    installed = [name.replace("-", "_") for name in names if name in cell.environment.versions]
    return [*installed, *([_LATE_IMPORT] if "torch" in installed else [])]
