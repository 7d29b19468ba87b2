"""The start of a stranger's script: a cell's main process within walls, in the script's own folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import psutil

import repros
from repros.diagnose.watch.inside import watch as observation
from repros.engine.launch.cold import Interpreter
from repros.engine.launch.environ import for_cell
from repros.engine.launch.supervise import CellDirs, MainProcess
from repros.inside import contract
from repros.model import Cell
from repros.model.cache import cache_folder
from repros.scripts.try_.environ import script_environ
from repros.scripts.try_.inside import ranks
from repros.scripts.try_.inside import sandbox as confine
from repros.scripts.try_.program import Program

_PACKAGE = Path(repros.__file__).parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys")
_RESOLVER = "/run/systemd/resolve"
"""Where `/etc/resolv.conf` leads on many systems."""
_INTERPRETER = Path(os.path.realpath(sys.executable))
_SECONDS = 30
"""That the test of the walls gets."""
WATCH = "watch"
"""The folder of the watch's events, in the cell's."""
HOME = ".home"
"""The script's home, in its folder."""
_OF_ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
_SKIPPED = frozenset({"ranks_wait_apart"})
"""A check whose thread the engine would take for one that may release a rank; the engine sees a hang by itself."""


class Confinement(TypedDict):
    """The settings of :mod:`repros.scripts.try_.inside.sandbox`."""

    walls: list[str]
    """The walls to build, by name."""
    memory: int
    """Bytes of each process."""
    file_size: int
    """Bytes of each file that it writes."""
    readable: list[str]
    """Files and folders, with all below them."""
    writable: list[str]
    """Likewise."""


@dataclass(frozen=True)
class Options:
    """How a script runs on a stack."""

    ranks: int = 1
    own: bool = False
    """Whether the script starts its ranks itself."""
    gpus: int | None = None
    """How many simulated GPUs it has; None for none."""
    watch: bool = True
    """Whether the checks of `repros watch` look at it."""
    launched: bool = False
    """Whether a single rank gets the variables of torchrun, too; several always do, unless the script starts them."""


@dataclass(frozen=True)
class Limits:
    """What a script may take."""

    seconds: float
    memory: int
    """Bytes of each of its processes."""
    file_size: int
    """Bytes of each file that it writes."""


@dataclass(frozen=True)
class Walls:
    """What is between a script and the rest of the machine."""

    network: bool
    """Whether it is without a network."""
    files: bool
    """Whether it sees the system's files and its own alone."""
    problems: Mapping[str, str]
    """For each wall that this system cannot build, why."""


def find_walls(*, network: bool) -> Walls:
    """Return the walls that this system can build, tried in a process of its own.

    Args:
        network: whether the script may have the network anyway.
    """
    wanted = ["files"] if network else list(confine.WALLS)
    settings = {"walls": wanted, "readable": [], "writable": []}
    try:
        tried = subprocess.run(
            [str(_INTERPRETER), "-I", "-S", confine.__file__, json.dumps(settings)],
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        problems = json.loads(tried.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        problems = dict.fromkeys(wanted, f"the test of the walls failed: {error}")
    return Walls("network" in wanted and "network" not in problems, "files" not in problems, problems)


def free_memory(ranks: int) -> int:
    """Return the bytes that each of so many ranks may take of the memory that is free now."""
    return int(psutil.virtual_memory().available) // ranks


class Start:
    """Starts a script as the main process of a cell, and remembers where."""

    def __init__(
        self, script: Program, arguments: Sequence[str], limits: Limits, walls: Walls, options: Options
    ) -> None:
        """Take what to start, and how."""
        self._script, self._arguments, self._limits, self._walls = script, tuple(arguments), limits, walls
        self._options = options
        self.folder: Path | None = None
        """The script's own folder, which is gone after the run."""

    def __call__(self, cell: Cell, dirs: CellDirs) -> MainProcess:
        """Start the script in a session of its own."""
        cell = self._prepare(cell, dirs)
        with dirs.log.open("ab") as output:
            return Interpreter(
                subprocess.Popen(
                    self._command(cell, dirs),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=dirs.workdir,
                    env=self._environ(cell, dirs),
                    start_new_session=True,
                )
            )

    def _prepare(self, cell: Cell, dirs: CellDirs) -> Cell:
        """Write what the script finds in its folder; return the cell with the script's path."""
        self.folder = dirs.workdir
        for name in (HOME, ".tmp"):
            (self.folder / name).mkdir()
        path = self._script.copy_to(self.folder)
        return replace(cell, repro=replace(cell.repro, path=path))

    def _environ(self, cell: Cell, dirs: CellDirs) -> dict[str, str]:
        of_cell = for_cell(cell, dirs.folder, dirs.workdir, dirs.log)
        # So that what it starts by name, `torchrun` or `python`, is the environment's.
        of_cell["PATH"] = contract.path_with(str(cell.environment.python.parent), of_cell.get("PATH", os.defpath))
        network = not self._walls.network
        environ = script_environ(of_cell, dirs.workdir, network=network, gpus=self._options.gpus)
        if self._options.launched and cell.processes == 1:
            environ |= _OF_ONE_RANK
        if self._options.watch:
            (dirs.folder / WATCH).mkdir()
            environ |= observation.Options(str(dirs.folder / WATCH), skip=_SKIPPED).to_environ()
        return environ

    def _command(self, cell: Cell, dirs: CellDirs) -> list[str]:
        program = [str(_INTERPRETER), "-I", "-S"]
        command = [*self._script.words(cell.environment.python, cell.repro.path), *self._arguments]
        if cell.processes > 1 and not self._options.own:
            names = (contract.CELL, contract.HOOKED)
            command = [*program, ranks.__file__, *names, str(cell.processes), *command]
        return [*program, confine.__file__, json.dumps(self._settings(cell, dirs)), *command]

    def _settings(self, cell: Cell, dirs: CellDirs) -> Confinement:
        """Return what the script's process takes from itself."""
        python = cell.environment.python
        interpreters = (_INTERPRETER, python, Path(os.path.realpath(python)))
        readable = [*_SYSTEM, _RESOLVER, _PACKAGE, cache_folder(), *(each.parents[1] for each in interpreters)]
        return {
            "walls": [name for name in confine.WALLS if getattr(self._walls, name)],
            "memory": self._limits.memory,
            "file_size": self._limits.file_size,
            "readable": list(map(str, readable)),
            "writable": [str(dirs.folder), str(dirs.workdir), "/dev"],
        }
