"""A job: a program to run with its limits, the folders of one run of it, and the process that the engine starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from repros.model import Device


@dataclass(frozen=True)
class Job:
    """A Python program to run as one rank or several, and its limits, without any expectation of its result."""

    python: Path
    """The interpreter."""
    arguments: tuple[str, ...]
    """What the interpreter gets: the script and its arguments."""
    script: Path
    """The file that distinguishes ranks from helper processes: a process that runs it is a rank."""
    environ: Mapping[str, str]
    """The environment variables; :func:`repros.engine.launch.environ.for_run` adds those of a single run."""
    deadline: float
    """Seconds from the start after which the job counts as hung and is ended."""
    ranks: int = 1
    device: Device = Device.CPU
    gpus: tuple[str, ...] = ()
    """The GPUs assigned to it, as CUDA_VISIBLE_DEVICES names them; empty: those in `environ`."""
    main_pid: int | None = None
    """The pid of the main process in a PID namespace that the job makes for itself; None: it makes none."""
    workdir: Path | None = None
    """The working folder, deleted after the run; None: a new temporary folder."""
    output_folders: tuple[str, ...] = ()
    """Folders to make in the run's folder before the start, into which the program writes."""
    is_trusted: bool = True
    """Whether its processes record nothing but what happened to them; an untrusted script may write any record."""
    expects_hang: bool = False
    """Whether to look for a deadlock of its ranks before the deadline."""
    modules: tuple[str, ...] = ()
    """The modules that a warm server imports before it forks the ranks."""
    name: str = "job"
    """Names the environment in the names of log files."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Further entries of the request to a warm server, such as the settings of a sandbox."""


@dataclass(frozen=True)
class RunFolders:
    """The folders of one run of a job."""

    folder: Path
    """Logs and events; an absolute path, which is also the token by which the run's processes are found."""
    workdir: Path
    """The working folder, also for temporary files; deleted afterwards."""

    @property
    def log(self) -> Path:
        """The file for stdout and stderr of the main process."""
        return self.folder / "main.log"


class MainProcess(Protocol):
    """The process that the engine started; its pid is the id of the run's session."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for its end; return whether it ended."""

    def end(self) -> None:
        """Make sure that it has ended; its session may not exist yet.

        Raises:
            OSError: nothing ends it, or its end is not reported.
        """

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal; valid once `wait` has returned True."""
