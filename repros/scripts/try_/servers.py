"""Warm servers for untrusted scripts: a run imports no library, and its ranks are forked inside the sandbox.

A server has none of the user's environment variables, not even at its start, since a forked process shows those. The
process that it forks enters the sandbox of `repros try` by itself (:mod:`repros.scripts.try_.inside.server`). All runs
have the home folder of the server, since libraries look it up when they are imported. Each sees a folder of its own
there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from repros.engine.launch import Job, Servers
from repros.engine.launch.environ import for_device
from repros.engine.launch.removal import remove_tree
from repros.engine.launch.server import Server
from repros.scripts.try_.environ import HOME, TEMPORARY, script_environ

_PROGRAM = "from repros.scripts.try_.inside import server; server.main()"


class SandboxServers(Servers):
    """The warm servers of the runs of one script; a context manager that ends them with all that they have forked."""

    def __init__(
        self, logs: Path, report_progress: Callable[[str], None] = lambda _: None, *, network: bool, gpus: int | None
    ) -> None:
        """Prepare without starting a server.

        Args:
            logs: folder for the servers' logs.
            report_progress: receives lines of progress, from the threads that launch.
            network: whether scripts may use the network.
            gpus: number of simulated GPUs; None for none.
        """
        super().__init__(logs, report_progress)
        self.folder = Path(tempfile.mkdtemp(prefix="repros-"))
        """The folder with the home folder and the temporary one of the servers, which every run replaces by its own."""
        for name in (HOME, TEMPORARY):
            (self.folder / name).mkdir()
        self._network, self._gpus = network, gpus

    def close(self) -> None:
        """End every server, and delete the home folder."""
        super().close()
        remove_tree(self.folder)

    def _start(self, job: Job, log: Path) -> Server:
        variables = for_device(job.device, job.ranks, on_stack=False)
        environ = script_environ(variables, self.folder, network=self._network, gpus=self._gpus)
        return Server(
            job.python, _PROGRAM, job.modules, environ, log, workdir=self.folder, report_progress=self._report_progress
        )
