"""Warm launch: through servers that have imported the libraries once and fork the ranks of each cell.

There is one server per interpreter and device, and per number of GPUs, which the simulated accelerator fixes when it
loads; all cells on the CPU share one.
A server starts with the first cell that needs it and imports further modules when later cells need them. It ends with
its :class:`Servers`, or with this process, whose death closes the socket that the server reads. The server's own side
is :mod:`repros.inside.warm`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name

from repros.engine.launch.server import Leader, Server, ServerGoneError
from repros.engine.launch.supervise import CellDirs
from repros.model import Cell, Device

_LATE_IMPORTS = {
    "torch": ("torch._dynamo", "torch.distributed.run"),
    "transformers": ("transformers.trainer",),
    "trl": ("trl.trainer.sft_trainer", "trl.trainer.dpo_trainer"),
}
"""What a package, Lightning and scripts import late: at an optimizer's first step, in `Trainer.fit`, to start ranks.

Left to the ranks, `torch._dynamo` took 95 % of a cell's time on torch 2.1: 190 modules, in every rank of every cell.
`torch.distributed.run` takes a rank 20 ms, as much as all else that a script of plain DDP does. transformers and trl
import their modules when a name of them is used: 2,500 modules for Trainer, with datasets and peft.
"""


class Servers:
    """The warm servers of one run, by interpreter, device and number of GPUs; a context manager that ends them."""

    def __init__(self, logs: Path, report_progress: Callable[[str], None] = lambda _: None) -> None:
        """Take the folder for the servers' logs, and who receives lines of progress, from the threads that launch."""
        self._logs = logs
        self._report_progress = report_progress
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
        devices = 1 if cell.device is Device.CPU else cell.processes
        key = (cell.environment.python, cell.device, devices)
        with self._lock:
            if self._closed:
                raise ServerGoneError("no server is started any more")
            server = self._servers.get(key)
            if server is None or not server.alive:
                self._logs.mkdir(parents=True, exist_ok=True)
                log = self._logs / f"{cell.environment.name.replace('/', '-')}-{cell.device}-{devices}.log"
                server = self._servers[key] = Server(*key, modules_of(cell), log, self._report_progress)
        return server.launch(cell, dirs, modules_of(cell))


def modules_of(cell: Cell) -> list[str]:
    """Return the modules that a cell imports: its script's dependencies that are installed, and their late imports."""
    names = [canonicalize_name(requirement.name) for requirement in cell.repro.dependencies]
    installed = [name.replace("-", "_") for name in names if name in cell.environment.versions]
    return [*installed, *(late for name in installed for late in _LATE_IMPORTS.get(name, ()))]
