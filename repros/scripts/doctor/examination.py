"""The examination: attempts in the sandbox, run as `repros try` runs a script, and what became of each."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from repros.engine.launch import logs
from repros.model import Environment
from repros.model.errors import ReprosError
from repros.scripts.doctor.inside import attempts, sharing
from repros.scripts.doctor.targets import made_targets
from repros.scripts.try_.cgroup import memory_group
from repros.scripts.try_.job import ObservedRun, run_task
from repros.scripts.try_.orphans import adopted
from repros.scripts.try_.sandbox import Limits, Sandbox
from repros.scripts.try_.script import Script
from repros.scripts.try_.task import Task, TaskOptions

_SECONDS = 60
_MEMORY, _FILE_SIZE = 2**28, 2**20

TRIED = {
    "read": "read a file of yours",
    "list": "list your home folder",
    "name": "ask for the size and times of a file of yours",
    "write": "write to a file of yours",
    "mode": "change the mode of a file of yours",
    "system": "make a folder among those of the system",
    "setuid": "make a file that runs as its owner for others",
    "secret": "read a token among your environment variables",
    "network": "connect to a server on 127.0.0.1",
    "socket": "connect to a socket in a folder, as Docker has one",
    "abstract": "connect to a socket without a folder",
    "host": "make a socket to the host of a virtual machine",
    "shared": "open a shared memory file of another program",
    "segment": "attach a System V segment of another program",
    "keys": "ask for the keys of your session",
    "terminal": "open a terminal of yours",
    "devices": "find devices such as disks",
    "see": "see a process of yours, and its arguments",
    "signal": "signal a process of yours",
    "trace": "trace a process of yours",
    "memory": "open the memory of a process of yours",
    "slow": "set the priority of a process of yours",
    "capabilities": "keep capabilities",
    "namespaces": "make namespaces",
    "io_uring": "use io_uring, which a filter does not see",
    "file size": "write a larger file than --file-size",
    "hold": "use more private memory than --memory",
    "share": "use more shared memory than --memory",
    "daemon": "leave a daemon behind",
}
"""What each attempt is, in the order of the report."""


@dataclass(frozen=True)
class AttemptResult:
    """An attempt of a script in the sandbox."""

    name: str
    stands: bool | None
    """Whether the sandbox kept it from succeeding; None if this system has nothing to try it on."""
    answer: str
    """What the system said."""


@dataclass(frozen=True)
class Examination:
    """The sandbox of this machine and this user, as tried."""

    sandbox: Sandbox
    has_cgroup: bool
    """Whether a cgroup limits all memory of a script."""
    attempts: tuple[AttemptResult, ...]

    @property
    def open(self) -> tuple[AttemptResult, ...]:
        """The attempts that succeeded."""
        return tuple(attempt for attempt in self.attempts if attempt.stands is False)


def examine(sandbox: Sandbox) -> Examination:
    """Try a sandbox on this machine.

    Raises:
        ReprosError: the attempts could not be run.
    """
    with memory_group(_MEMORY) as group:
        has_cgroup = group is not None
    with made_targets() as targets, tempfile.TemporaryDirectory(prefix="repros-doctor-") as folder:
        given = {**targets, "file_size": _FILE_SIZE, "memory": 2 * _MEMORY}
        with adopted():
            tried = _run_attempts(sandbox, given, folder)
            answers = {name: AttemptResult(name, stands, text) for name, stands, text in tried}
            answers["share"] = _share(sandbox, Path(folder))
        if "daemon" in answers:
            answers["daemon"] = _find_daemon(f"{targets['token']}-daemon")
    if missing := TRIED.keys() - answers.keys():
        raise ReprosError(f"the attempts ended early; not tried: {', '.join(sorted(missing))}.")
    return Examination(sandbox, has_cgroup, tuple(answers[name] for name in TRIED))


def _run_attempts(sandbox: Sandbox, targets: dict[str, Any], folder: str) -> Iterator[tuple[str, bool | None, str]]:
    """Yield each attempt with whether the sandbox stood, and the system's answer.

    Raises:
        ReprosError: the script did not run.
    """
    run, output = _run(sandbox, Path(attempts.__file__), json.dumps(targets), Path(folder, "attempts"))
    if run.observation.broken or not output:
        raise ReprosError(f"the attempts could not be run: {run.observation.broken or 'they printed nothing'}.")
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            name, reached, answer = json.loads(line)
            yield name, None if reached is None else not reached, answer


def _share(sandbox: Sandbox, folder: Path) -> AttemptResult:
    _, output = _run(sandbox, Path(sharing.__file__), str(_MEMORY * 5 // 4), folder / "sharing")
    has_held = "held" in output.splitlines()
    return AttemptResult("share", not has_held, "done" if has_held else "all its processes were ended")


def _run(sandbox: Sandbox, program: Path, argument: str, folder: Path) -> tuple[ObservedRun, str]:
    script = Script(program.name, program.read_text("utf-8"), str(program))
    task = Task(script, (argument,), TaskOptions(watch=False), Limits(_SECONDS, _MEMORY, _FILE_SIZE), sandbox)
    python = Path(sys.executable)
    version = ".".join(map(str, sys.version_info[:3]))
    run = run_task(task, Environment("doctor", python, version, {}), folder)
    written = b"".join(logs.read(run.observation.folder, [run.observation.folder / "main.log"]))
    return run, written.decode("utf-8", "replace")


def _find_daemon(token: str) -> AttemptResult:
    """Return whether a process with a token is left, and end it."""
    left = False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(token in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                left = True
                process.kill()
    return AttemptResult("daemon", not left, "it was left" if left else "it was ended")
