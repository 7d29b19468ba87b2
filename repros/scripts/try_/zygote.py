"""A warm server for the scripts of one environment, seen from this process: a script costs no import of a library.

The server has none of the user's environment variables, not even at its start, since a forked process shows those.
What it forks builds the walls of `repros try` for itself (:mod:`repros.scripts.try_.inside.zygote`), and finds its
home in
the server's folder: libraries look for it when they are imported.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from repros.engine.launch import containment
from repros.engine.launch.environ import for_device
from repros.engine.launch.patience import wait_for_answer
from repros.engine.launch.server import Leader, ServerGoneError
from repros.engine.launch.supervise import CellDirs
from repros.inside import contract
from repros.model import Cell
from repros.scripts.try_.environ import script_environ
from repros.scripts.try_.start import HOME, Start

_PROGRAM = "from repros.scripts.try_.inside import zygote; zygote.main()"
_IMPORT_SECONDS, _FORK_SECONDS, _END_SECONDS = 300.0, 30.0, 2.0
_UNINITIALISED = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Lets libraries look for a GPU without initialising CUDA, which does not survive a fork."""


class Zygote:
    """A warm server, as a context manager that ends it with all that it has forked."""

    def __init__(self, cell: Cell, modules: Iterable[str], log: Path, *, network: bool, gpus: int | None) -> None:
        """Start the server without waiting for its imports.

        Args:
            cell: a cell of the environment; its number of ranks is that of the devices.
            modules: what to import once: modules, and `module:name` for a name that a module loads when it is asked.
            log: the file for the server's output.
            network: whether scripts have the network.
            gpus: how many simulated GPUs there are; None for none.
        """
        self.home = Path(tempfile.mkdtemp(prefix="repros-"))
        for name in (HOME, ".tmp"):
            (self.home / name).mkdir()
        self._mark = uuid.uuid4().hex
        self._ids, self._lock = itertools.count(), threading.Lock()
        self._ready: Future[int] = Future()
        self._pids: dict[int, Future[int]] = {}
        self._statuses: dict[int, Future[int]] = {}
        of_device = for_device(cell.device, cell.processes)
        environ = script_environ(of_device, self.home, network=network, gpus=gpus)
        self._channel, its_end = socket.socketpair()
        with its_end, log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(cell.environment.python), "-c", _PROGRAM, *modules],
                stdin=its_end.fileno(),
                stdout=output,
                stderr=output,
                cwd=self.home,
                env=environ | {contract.SERVER: self._mark} | _UNINITIALISED,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server and what it has forked."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(_END_SECONDS if self._ready.done() else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            containment.end_marked(contract.SERVER, self._mark)
        self._listener.join()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def is_alive(self) -> bool:
        """Whether the server runs."""
        return self._process.poll() is None

    def fork(self, request: dict[str, Any]) -> Leader:
        """Ask for a leader.

        Raises:
            ServerGoneError: the server has ended, or does not answer.
        """
        id_ = next(self._ids)
        pid = self._pids[id_] = Future()
        status = self._statuses[id_] = Future()
        try:
            self._wait_for(self._ready, _IMPORT_SECONDS)
            with self._lock:
                self._channel.sendall((json.dumps({"id": id_, **request}) + "\n").encode())
            return Leader(self._wait_for(pid, _FORK_SECONDS), status, self._process)
        except (OSError, TimeoutError) as error:
            self._process.kill()
            raise ServerGoneError(f"the server that imports the libraries does not answer: {error}") from error

    def _wait_for(self, answer: Future[int], limit: float) -> int:
        return wait_for_answer(answer.result, self._process.pid, limit, "the server that imports the libraries")

    def _listen(self) -> None:
        """Receive the server's answers until its end; then fail all that still wait for one."""
        with self._channel, self._channel.makefile("rb") as answers, contextlib.suppress(OSError, ValueError):
            for line in answers:
                self._take(json.loads(line))
        gone = ServerGoneError("it has ended")
        for future in (self._ready, *list(self._pids.values()), *list(self._statuses.values())):
            if not future.done():
                future.set_exception(gone)

    def _take(self, answer: dict[str, Any]) -> None:
        if "ready" in answer:
            self._ready.set_result(0)
        elif "status" in answer:
            self._statuses.pop(answer["id"]).set_result(answer["status"])
        else:
            self._pids.pop(answer["id"]).set_result(answer["pid"])


class WarmStart(Start):
    """Starts a script by a fork of a server, behind the same walls."""

    zygote: Zygote

    def __call__(self, cell: Cell, dirs: CellDirs) -> Leader:
        """Start the script's leader, which forks its ranks."""
        cell = self._prepare(cell, dirs)
        environ = self._environ(cell, dirs)
        home = {name: value for name, value in self._homes().items() if name in environ}
        settings = self._settings(cell, dirs)
        return self.zygote.fork(
            {
                "argv": [str(cell.repro.path), *self._arguments],
                "cwd": str(dirs.workdir),
                "environ": environ | home,
                "ranks": cell.processes,
                "log": str(dirs.log),
                "confinement": {**settings, "writable": [*settings["writable"], str(self.zygote.home)]},
            }
        )

    def _homes(self) -> dict[str, str]:
        home = self.zygote.home / HOME
        return {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "XDG_CONFIG_HOME": str(home / ".config")}
