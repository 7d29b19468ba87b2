"""Run one job and observe how it ends; nothing else in the project knows how a program is run."""

from __future__ import annotations

import threading
from pathlib import Path

from repros.engine.launch import cold, supervise
from repros.engine.launch.job import Job
from repros.engine.launch.warm import Servers
from repros.model import Launch, Observation

__all__ = ["Job", "Servers", "run"]


def run(job: Job, folder: Path, stop: threading.Event | None = None, servers: Servers | None = None) -> Observation:
    """Run one job and return when none of its processes lives.

    Args:
        job: the program.
        folder: new folder for its logs and events.
        stop: ends the run early when it is set; the observation is then `broken`.
        servers: the warm servers that launch it; without them it is launched cold.
    """
    if servers is None:
        return supervise.run(job, folder, cold.launch, Launch.COLD, stop or threading.Event())
    return supervise.run(job, folder, servers.launch, Launch.WARM, stop or threading.Event())
