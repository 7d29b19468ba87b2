"""The sandbox of an untrusted script: its limits, what this system can isolate, and the settings that build it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

import psutil

import repros
from repros.model.cache import cache_folder
from repros.scripts.try_.bubblewrap import build_command, find_bubblewrap
from repros.scripts.try_.inside import sandbox
from repros.scripts.try_.paths import find_paths

INTERPRETER = Path(os.path.realpath(sys.executable))
"""The interpreter of this project, which runs the programs of :mod:`repros.scripts.try_.inside`."""
_PACKAGE = Path(repros.__file__).parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys")
_LINKED = ("/run/systemd/resolve", "/run/current-system", "/run/opengl-driver")
"""Targets of links: of `/etc/resolv.conf` on many systems, and of programs and drivers on NixOS."""
_SELF_TEST_TIMEOUT = 30
"""Seconds."""


class SandboxSettings(TypedDict):
    """The settings of :mod:`repros.scripts.try_.inside.sandbox`."""

    isolate: list[str]
    """What to isolate the process from: `network`, `system`, `processes`, `files`, `calls`."""
    memory: int
    """Bytes of private memory of each process."""
    shared_memory: int
    """Bytes that all processes share."""
    file_size: int
    """Bytes of each file that it writes."""
    readable: list[str]
    """Files and folders, including everything below them."""
    writable: list[str]
    replaced: dict[str, str]
    """Folders among the writable ones, with those that are mounted in their places."""
    links: dict[str, str]
    """Links outside these folders, with their targets."""
    hidden: list[str]
    """Files and folders below the readable ones that look empty."""
    group: str | None
    """The cgroup that the processes join; None for none."""
    bubblewrap: list[str]
    """The command line of bubblewrap, which makes the namespaces; empty for the kernel's calls."""


@dataclass(frozen=True)
class Limits:
    """What a script may use."""

    seconds: float
    memory: int
    """Bytes of each of its processes."""
    file_size: int
    """Bytes of each file that it writes."""


@dataclass(frozen=True)
class Sandbox:
    """What isolates a script from the rest of the machine."""

    network: bool
    """Whether it has no network."""
    files: bool
    """Whether it can read only the system's files and its own."""
    system: bool
    """Whether it has a file system, devices and shared memory of its own."""
    processes: bool
    """Whether it sees and reaches its own processes alone, which die together."""
    calls: bool
    """Whether it has no capabilities, and system calls that reach beyond it are refused."""
    problems: Mapping[str, str]
    """The reason for each isolation that this system cannot provide."""
    bubblewrap: str | None = None
    """The program that makes the namespaces; None for the kernel's calls."""
    can_fork: bool = True
    """Whether a process that a warm server forks can enter it: by the kernel's calls, with the same isolations."""

    def settings(
        self,
        limits: Limits,
        ranks: int,
        interpreters: Iterable[Path],
        writable: Iterable[Path],
        replaced: Mapping[Path, Path] = MappingProxyType({}),
        *,
        group: Path | None = None,
    ) -> SandboxSettings:
        """Return the settings of a process.

        Args:
            limits: its limits.
            ranks: the number of processes that share memory.
            interpreters: the interpreters whose environments it may read.
            writable: the folders that it may change.
            replaced: folders that it may change, too, with those that it sees there if the system can do that. Only a
                process that a warm server has forked has them.
            group: the cgroup that it joins; None for none.
        """
        interpreters = (INTERPRETER, *interpreters)
        environments = (interpreter.parents[1] for interpreter in interpreters)
        system = map(Path, (*_SYSTEM, *_LINKED))
        accelerators = cache_folder() / "sim"  # not its locks, which a script could hold
        paths = find_paths([*system, _PACKAGE, accelerators, *environments, *interpreters], [*writable, *replaced])
        shared_memory = limits.memory * ranks
        program = None if replaced else self.bubblewrap
        words = build_command(program, paths, shared_memory, network=self.network) if program else []
        return {
            "isolate": [name for name in sandbox.ISOLATIONS if getattr(self, name)],
            "memory": limits.memory,
            "shared_memory": shared_memory,
            "file_size": limits.file_size,
            "readable": list(map(str, paths.readable)),
            "writable": [*map(str, paths.writable), "/dev"],
            "replaced": {str(path): str(own) for path, own in replaced.items()},
            "links": {str(path): str(target) for path, target in paths.links.items()},
            "hidden": list(map(str, paths.hidden)),
            "group": str(group) if group else None,
            "bubblewrap": words,
        }


def find_sandbox(*, network: bool, with_bubblewrap: bool = True) -> Sandbox:
    """Return the sandbox that this system can provide, tested in processes of their own.

    Args:
        network: whether the script may use the network.
        with_bubblewrap: whether bubblewrap makes the namespaces where it is installed.
    """
    wanted = [name for name in sandbox.ISOLATIONS if name != "network" or not network]
    own = _with_problems(_find_problems(wanted, None), wanted)
    program = find_bubblewrap() if with_bubblewrap else None
    if program is None:
        return own
    problems = _find_problems(wanted, program)
    if len(problems) > len(own.problems):
        return own
    return replace(_with_problems(problems, wanted), bubblewrap=program, can_fork=len(problems) == len(own.problems))


def _with_problems(problems: dict[str, str], wanted: Container[str]) -> Sandbox:
    network, system, processes, files, calls = (
        name in wanted and name not in problems for name in ("network", "system", "processes", "files", "calls")
    )
    return Sandbox(network, files, system, processes, calls, problems)


def _find_problems(wanted: list[str], bubblewrap: str | None) -> dict[str, str]:
    """Return the reason for each isolation that this system cannot provide, by bubblewrap or by the kernel's calls."""
    tested = replace(_with_problems({}, wanted), bubblewrap=bubblewrap)
    settings = tested.settings(Limits(_SELF_TEST_TIMEOUT, 2**20, 2**20), 1, (), ())
    command = [str(INTERPRETER), "-I", "-S", "-c", sandbox.PROGRAM, json.dumps(settings)]
    try:
        done = subprocess.run(command, cwd="/", capture_output=True, timeout=_SELF_TEST_TIMEOUT, check=False)
        if done.returncode == 0:
            return dict(json.loads(done.stdout))
        reason = done.stderr.decode("utf-8", "replace").strip()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = str(error)
    return dict.fromkeys(wanted, f"the self-test of the sandbox failed: {reason}")


def free_memory(ranks: int) -> int:
    """Return the bytes that each of a number of ranks may use of the memory that is free now."""
    return int(psutil.virtual_memory().available) // ranks
