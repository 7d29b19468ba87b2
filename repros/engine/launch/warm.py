"""Warm launch: through servers that have imported the libraries once and fork the ranks of each job.

There is one server per interpreter and device, and per number of GPUs, which the simulated accelerator fixes when it
loads; all jobs on the CPU share one.
A server starts with the first job that needs it and imports further modules when later jobs need them. It ends with its
:class:`Servers`, or with this process, whose death closes the socket that the server reads. The server's own side is
:mod:`repros.inside.warm`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name

from repros.engine.launch.job import Job, RunFolders
from repros.engine.launch.server import Leader, Server, ServerGoneError
from repros.model import Device, Environment

_PROGRAM = "from repros.inside import warm; warm.main()"
_LATE_IMPORTS = {
    "torch": ("torch._dynamo", "torch.distributed.run"),
    "transformers": ("transformers.trainer",),
    "trl": ("trl.trainer.sft_trainer", "trl.trainer.dpo_trainer"),
}
"""Modules that a package, Lightning and scripts import late: at an optimizer's first step, in `Trainer.fit`, to start
ranks.

Left to the ranks, `torch._dynamo` took 95 % of a cell's time on torch 2.1: 190 modules, in every rank of every cell.
`torch.distributed.run` takes a rank 20 ms, as much as all else that a script of plain DDP does. transformers and trl
import their modules when a name of them is used: 2,500 modules for Trainer, with datasets and peft.
"""


class Servers:
    """The warm servers of one run, by interpreter, device and number of GPUs; a context manager that ends them."""

    def __init__(self, logs: Path, report_progress: Callable[[str], None] = lambda _: None) -> None:
        """Prepare without starting a server.

        Args:
            logs: folder for the servers' logs.
            report_progress: receives lines of progress, from the threads that launch.
        """
        self._logs = logs
        self._report_progress = report_progress
        self._servers: dict[tuple[Path, Device, int], Server] = {}
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every server with the jobs that it still runs, and start no further servers."""
        with self._lock:
            self._closed = True
        for server in self._servers.values():
            server.ask_to_end()
        for server in self._servers.values():
            server.close()

    def launch(self, job: Job, folders: RunFolders) -> Leader:
        """Launch the job through its server, which is started if it does not exist or has ended.

        Raises:
            ServerGoneError: the server does not answer, or these servers are closed.
        """
        devices = 1 if job.device is Device.CPU else job.ranks
        key = (job.python, job.device, devices)
        with self._lock:
            if self._closed:
                raise ServerGoneError("no server is started any more")
            server = self._servers.get(key)
            if server is None or not server.alive:
                self._logs.mkdir(parents=True, exist_ok=True)
                log = self._logs / f"{job.name.replace('/', '-')}-{job.device}-{devices}.log"
                server = self._servers[key] = self._start(job, log)
        return server.launch(job, folders)

    def _start(self, job: Job, log: Path) -> Server:
        """Start the server of a job."""
        return Server(
            job.python,
            _PROGRAM,
            job.modules,
            # By these, libraries decide at their import what they do later.
            job.environ,
            log,
            report_progress=self._report_progress,
        )


def modules_of(packages: Iterable[str], environment: Environment) -> tuple[str, ...]:
    """Return the modules that a warm server imports: the packages that are installed, and their late imports.

    Args:
        packages: names of distributions.
        environment: where they may be installed.
    """
    names = map(canonicalize_name, packages)
    installed = [name.replace("-", "_") for name in names if name in environment.versions]
    return (*installed, *(module for name in installed for module in _LATE_IMPORTS.get(name, ())))
