"""A script's run as a job of the engine: copied into a new working folder, in the sandbox, with its own environment."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.diagnose.watch.inside.watch import WatchOptions
from repros.engine import launch
from repros.engine.launch import Job
from repros.engine.launch.environ import for_device
from repros.inside import contract
from repros.model import Device, Environment, Observation
from repros.scripts.try_.cgroup import memory_group
from repros.scripts.try_.environ import HOME, TEMPORARY, home_variables, script_environ, shell_notes
from repros.scripts.try_.inside import init, ranks, sandbox
from repros.scripts.try_.sandbox import INTERPRETER, free_memory
from repros.scripts.try_.servers import SandboxServers
from repros.scripts.try_.task import Task

WATCH = "watch"
"""The folder of the watch's events, in that of the run."""
_SINGLE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
_SKIPPED = frozenset({"ranks_wait_apart"})
"""A check whose thread the engine would take for one that may release a rank; the engine detects a deadlock itself."""


@dataclass(frozen=True)
class ObservedRun:
    """One run of a program."""

    observation: Observation
    workdir: Path
    """Its working folder, which is deleted after the run."""


def run_task(
    task: Task,
    environment: Environment,
    folder: Path,
    stop: threading.Event | None = None,
    servers: SandboxServers | None = None,
    modules: Sequence[str] = (),
) -> ObservedRun:
    """Run a program once, and return when none of its processes lives.

    Args:
        task: the program, and how to run it.
        environment: the environment to run it in.
        folder: new folder for its logs and events.
        stop: ends the run early when it is set.
        servers: forks the ranks from warm servers; None: each process starts its own interpreter.
        modules: what the servers import.
    """
    workdir = Path(tempfile.mkdtemp(prefix="repros-"))
    with memory_group(_most_memory(task)) as group:
        try:
            job = make_job(task, environment, folder.resolve(), workdir, servers, modules, group)
        except OSError as error:
            shutil.rmtree(workdir, ignore_errors=True)
            return ObservedRun(Observation((), 0.0, folder, broken=f"the engine failed: {error}"), workdir)
        return ObservedRun(launch.run(job, folder, stop, servers), workdir)


def _most_memory(task: Task) -> int:
    """Return the bytes that all processes may use together: twice the limit of the ranks, since they share as much."""
    return min(2 * task.limits.memory * task.options.ranks, free_memory(1))


def make_job(
    task: Task,
    environment: Environment,
    folder: Path,
    workdir: Path,
    servers: SandboxServers | None = None,
    modules: Sequence[str] = (),
    group: Path | None = None,
) -> Job:
    """Copy a program into its working folder, and return the job that runs it there.

    Args:
        task: the program, and how to run it.
        environment: the environment to run it in.
        folder: folder for the logs and events of the run; an absolute path.
        workdir: the working folder, which exists and is empty.
        servers: forks its ranks; None for a cold launch.
        modules: what the servers import.
        group: the cgroup of its processes; None for none.

    Raises:
        OSError: a file cannot be copied.
    """
    for name in (HOME, TEMPORARY):
        (workdir / name).mkdir()
    options, python = task.options, environment.python
    script = task.script.copy_to(workdir)
    interpreters = (python, Path(os.path.realpath(python)))
    own_folders = {servers.folder / name: workdir / name for name in (HOME, TEMPORARY)} if servers else {}
    writable = (folder, workdir)
    settings = task.sandbox.settings(task.limits, options.ranks, interpreters, writable, own_folders, group=group)
    environ = _environ(task, environment, folder, workdir)
    if servers is not None:
        environ |= home_variables(servers.folder / HOME)
        program, arguments = python, (str(script), *task.arguments)
    else:
        program, arguments = INTERPRETER, _command(task, python, script, json.dumps(settings))
    return Job(
        python=program,
        arguments=arguments,
        script=script,
        environ=environ,
        deadline=task.limits.seconds,
        main_pid=init.MAIN_PID if task.sandbox.processes else None,
        ranks=options.ranks,
        device=device_of(task),
        workdir=workdir,
        output_folders=(WATCH,) if options.watch else (),
        is_trusted=False,
        expects_hang=options.ranks > 1,
        modules=tuple(modules),
        name=environment.name,
        request={"sandbox": settings},
    )


def device_of(task: Task) -> Device:
    """Return the device that a program runs on."""
    return Device.CPU if task.options.gpus is None else Device.SIM


def describe_shell(task: Task) -> tuple[str, ...]:
    """Return which variables of the user's shell that may change results a program gets, and which it does not."""
    return shell_notes(os.environ, _script_environ(task, os.environ.get("PATH", os.defpath), Path()))


def _script_environ(task: Task, path: str, workdir: Path) -> dict[str, str]:
    options = task.options
    variables = {**for_device(device_of(task), options.ranks, on_stack=False), "PATH": path}
    return script_environ(variables, workdir, network=not task.sandbox.network, gpus=options.gpus)


def _environ(task: Task, environment: Environment, folder: Path, workdir: Path) -> dict[str, str]:
    options = task.options
    # Programs that it starts by name, `torchrun` or `python`, are then those of the environment.
    path = contract.path_with(str(environment.python.parent), os.environ.get("PATH", os.defpath))
    environ = _script_environ(task, path, workdir)
    if options.launched and options.ranks == 1:
        environ |= _SINGLE_RANK
    if options.watch:
        environ |= WatchOptions(str(folder / WATCH), skip=_SKIPPED).to_environ()
    return environ


def _command(task: Task, python: Path, script: Path, settings: str) -> tuple[str, ...]:
    """Return the interpreter's arguments: the sandbox, the launcher of several ranks, and the program's command."""
    command = [*task.script.words(python, script), *task.arguments]
    if task.options.ranks > 1 and not task.options.own:
        names = (contract.CELL, contract.HOOKED)
        command = [str(INTERPRETER), "-I", "-S", ranks.__file__, *names, str(task.options.ranks), *command]
    return ("-I", "-S", "-c", sandbox.PROGRAM, settings, *command)
