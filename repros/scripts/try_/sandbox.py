"""The sandbox of an untrusted script: its limits, what this system can isolate, and the settings that build it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

import psutil

import repros
from repros.model.cache import cache_folder
from repros.scripts.try_.inside import sandbox

INTERPRETER = Path(os.path.realpath(sys.executable))
"""The interpreter of this project, which runs the programs of :mod:`repros.scripts.try_.inside`."""
_PACKAGE = Path(repros.__file__).parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys")
_RESOLVER = "/run/systemd/resolve"
"""The target of `/etc/resolv.conf` on many systems."""
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
    """Whether it has mounts, devices and shared memory of its own."""
    processes: bool
    """Whether it sees and reaches its own processes alone, which die together."""
    calls: bool
    """Whether system calls that reach beyond it are refused."""
    problems: Mapping[str, str]
    """The reason for each isolation that this system cannot provide."""

    def settings(
        self,
        limits: Limits,
        ranks: int,
        interpreters: Iterable[Path],
        writable: Iterable[Path],
        replaced: Mapping[Path, Path] = MappingProxyType({}),
    ) -> SandboxSettings:
        """Return the settings of a process.

        Args:
            limits: its limits.
            ranks: the number of processes that share memory.
            interpreters: the interpreters whose environments it may read.
            writable: the folders that it may change.
            replaced: folders that it may change, too, with those that it sees there if the system can do that.
        """
        environments = (interpreter.parents[1] for interpreter in (INTERPRETER, *interpreters))
        readable = [*_SYSTEM, _RESOLVER, _PACKAGE, cache_folder(), *environments]
        return {
            "isolate": [name for name in sandbox.ISOLATIONS if getattr(self, name)],
            "memory": limits.memory,
            "shared_memory": limits.memory * ranks,
            "file_size": limits.file_size,
            "readable": list(map(str, readable)),
            "writable": [*map(str, (*writable, *replaced)), "/dev"],
            "replaced": {str(path): str(own) for path, own in replaced.items()},
        }


def find_sandbox(*, network: bool) -> Sandbox:
    """Return the sandbox that this system can provide, tested in a process of its own.

    Args:
        network: whether the script may use the network.
    """
    wanted = [name for name in sandbox.ISOLATIONS if name != "network" or not network]
    settings = {"isolate": wanted, "shared_memory": 2**20, "readable": [], "writable": [], "replaced": {}}
    try:
        tested = subprocess.run(
            [str(INTERPRETER), "-I", "-S", sandbox.__file__, json.dumps(settings)],
            capture_output=True,
            timeout=_SELF_TEST_TIMEOUT,
            check=True,
        )
        problems = json.loads(tested.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        problems = dict.fromkeys(wanted, f"the self-test of the sandbox failed: {error}")
    provided = {name: name in wanted and name not in problems for name in sandbox.ISOLATIONS}
    return Sandbox(**provided, problems=problems)


def free_memory(ranks: int) -> int:
    """Return the bytes that each of a number of ranks may use of the memory that is free now."""
    return int(psutil.virtual_memory().available) // ranks
