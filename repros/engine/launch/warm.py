"""Warm launch: through servers that have imported the libraries once and fork the ranks of each cell.

There is one server per interpreter, device and number of devices (which the simulated accelerator fixes when it loads).
A server starts with the first cell that needs it and imports further modules when later cells need them. It ends with
its :class:`Servers`, or with this process, whose death closes the pipe that the server reads. The server's own side is
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
from repros.inside import contract
from repros.model import Cell, Device

_START = "from repros.inside import warm; warm.main()"
_IMPORT_TIMEOUT = 300.0
"""Seconds that a server gets for its imports."""
_FORK_TIMEOUT = 30.0
"""Seconds that it gets to fork a leader; then it is killed (it may be stopped), and the next cell gets a new server."""
_END_TIMEOUT = 2.0
"""Seconds that a server gets to end its cells and itself; one that is importing does not read its stdin."""
_LATE_IMPORT = "torch._dynamo"
"""A package that torch and Lightning import late: at an optimizer's first step and in `Trainer.fit`.

Left to the ranks, this import took 95 % of a cell's time on torch 2.1: 190 modules, in every rank of every cell.
"""


_UNINITIALISED = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Lets libraries look for a GPU when they are imported without initialising CUDA, which does not survive a fork."""


class ServerGoneError(OSError):
    """A warm server that ended or does not answer; only the cells that ran on it are lost."""


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
    """One warm server, and the messages to and from it."""

    def __init__(self, python: Path, device: Device, processes: int, modules: Sequence[str], log: Path) -> None:
        """Start the server without waiting for its imports.

        Args:
            python: the interpreter of the environment under test.
            device: the device that its cells run on.
            processes: how many devices its cells see.
            modules: what to import once.
            log: the file for its stdout and stderr.
        """
        self._mark = uuid.uuid4().hex
        self._imported = set(modules)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(python), "-c", _START, *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=for_device(device, processes) | {contract.SERVER: self._mark} | _UNINITIALISED,
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
        """Ask the server to fork the cell's leader.

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
            with self._lock:  # an import delays every later request
                self._import(modules_of(cell))
                pid = self._ask(id_, request)
            return Leader(pid.result(_FORK_TIMEOUT), status)
        except (OSError, TimeoutError) as error:
            self._process.kill()
            self._process.wait()  # so that it is not `alive` for the next cell
            raise ServerGoneError(f"the warm server {self.pid} does not answer: {error}") from error

    def ask_to_end(self) -> None:
        """Close the server's stdin, upon which it ends its cells and itself."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def close(self) -> None:
        """End the server and every cell that it still runs."""
        self.ask_to_end()
        if not self._ready.done():
            self._process.kill()  # it reads stdin only after its imports
        try:
            self._process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def _import(self, names: Sequence[str]) -> None:
        """Let the server import the modules that it lacks, and wait for that."""
        missing = [name for name in names if name not in self._imported]
        if missing:
            self._ask(next(self._ids), {"import": missing}).result(_IMPORT_TIMEOUT)
            self._imported.update(missing)

    def _ask(self, id_: int, request: dict[str, Any]) -> Future[int]:
        """Send a request; return the future answer."""
        assert self._process.stdin is not None
        answer = self._answers[id_] = Future[int]()
        self._process.stdin.write((json.dumps({"id": id_, **request}) + "\n").encode())
        self._process.stdin.flush()
        return answer

    def _listen(self) -> None:
        """Receive the server's answers until it ends; then fail all that still wait for one."""
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
            containment.end_marked(contract.SERVER, self._mark)
        with self._lock, contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        gone = ServerGoneError(f"it ended with {self._process.returncode}")
        waiting: list[Future[Any]] = [self._ready, *self._answers.values(), *self._statuses.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(gone)


class Servers:
    """The warm servers of one run, by interpreter, device and number of devices; a context manager that ends them."""

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
        """End every server with the cells that it still runs, and start no further servers."""
        with self._lock:
            self._closed = True
        for server in self._servers.values():
            server.ask_to_end()
        for server in self._servers.values():
            server.close()

    def launch(self, cell: Cell, dirs: CellDirs) -> Leader:
        """Launch the cell through its server, which is started if there is none or if it is gone."""
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
    """Return the modules that a cell imports: its script's dependencies that are installed, and their late imports."""
    names = [canonicalize_name(requirement.name) for requirement in cell.repro.dependencies]
    installed = [name.replace("-", "_") for name in names if name in cell.environment.versions]
    return [*installed, *([_LATE_IMPORT] if "torch" in installed else [])]
