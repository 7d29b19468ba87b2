"""Replacement of one package's version, with the dependencies of that version, in an environment of a stack."""

from __future__ import annotations

import csv
import datetime as dt
import subprocess
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.environments.uv import run_uv
from repros.environments.withdrawn import constraints
from repros.model import Stack
from repros.model.packages import RELEASED_TOGETHER

_TORCH_OWN = ("nvidia-", "cuda-", "triton")
"""Beginnings of the names of what only torch's CUDA build needs; each build pins its own."""


class Swap:
    """Installer of one package's versions into one environment.

    Each version is resolved anew against the stack's requirements, with the stack's lock as the preferred versions, and
    the environment is synchronised to exactly that. So a probe depends on its version alone, not on earlier probes.
    """

    def __init__(self, stack: Stack, package: str, python: Path) -> None:
        """Replace `package` in the environment of the interpreter `python`, which has the stack's packages."""
        self._stack = stack
        self._package = canonicalize_name(package)
        self._python = python

    def install(self, version: Version, as_of: dt.date | None = None) -> None:
        """Install a version.

        Args:
            version: the version.
            as_of: a day; what only follows from the stack's requirements is then no newer. None for the stack's lock.

        Raises:
            UvError: it cannot be resolved with the stack's other requirements, or cannot be installed.
        """
        folder = self._python.parents[1]
        wanted, resolved = folder / "wanted.txt", folder / "resolved.txt"
        wanted.write_text(_join_lines(swapped_requirements(self._stack, self._package, version)), encoding="utf-8")
        (folder / "withdrawn.txt").write_text(constraints(), encoding="utf-8")
        resolved.write_text(_join_lines(self._preferred_pins()), encoding="utf-8")
        where = ("--python", self._python)
        limits = ("--constraints", "withdrawn.txt", "--no-header", "--no-annotate", "--quiet")
        dates = self._date_limits(folder, as_of) if as_of else ()
        run_uv("pip", "compile", wanted.name, "--output-file", resolved.name, *limits, *dates, *where, folder=folder)
        before = _find_distributions(folder)
        run_uv("pip", "sync", resolved.name, *where, folder=folder)
        for distribution in _find_distributions(folder) - before:
            self._compile_bytecode(distribution)

    def _compile_bytecode(self, distribution: Path) -> None:
        """Compile a distribution's bytecode again.

        Python takes the previous version's bytecode for valid if a source has the same size and time, and wheels that
        are built to be reproducible give every file the same time.
        """
        with (distribution / "RECORD").open(encoding="utf-8", newline="") as record:
            files = [distribution.parent / row[0] for row in csv.reader(record) if row and row[0].endswith(".py")]
        sources = [file for file in files if file.exists()]
        command = [str(self._python), "-m", "compileall", "-q", "-f", "-i", "-"]
        # A source for another Python does not compile, and is never imported.
        subprocess.run(command, input=_join_lines(sources), text=True, check=False, capture_output=True)

    def _date_limits(self, folder: Path, as_of: dt.date) -> list[str]:
        """Return uv's options for a day: exempt are the stack's own requirements, and what a CUDA build of torch pins.

        The release itself counts as of its own day, whose last hour is included.
        """
        own = {canonicalize_name(requirement.name) for requirement in self._stack.requirements} - {self._package}
        for distribution in _find_distributions(folder):
            name = canonicalize_name(distribution.name.partition("-")[0])
            own |= {name} if name.startswith(_TORCH_OWN) else set()
        late = f"{self._stack.until}T23:59:59Z"
        limits = ["--exclude-newer", f"{as_of}T23:59:59Z"]
        return [*limits, *(word for name in sorted(own) for word in ("--exclude-newer-package", f"{name}={late}"))]

    def _preferred_pins(self) -> list[str]:
        """Return the lock's pins, without the package and the packages released with it."""
        names = {self._package, *RELEASED_TOGETHER.get(self._package, ())}
        return [str(pin) for pin in self._stack.pins.values() if pin.name not in names]


def swapped_requirements(stack: Stack, package: str, version: Version) -> list[Requirement]:
    """Return the stack's requirements, with this version of the package instead of the stack's own."""
    others = [r for r in stack.requirements if canonicalize_name(r.name) != package]
    with_it = [Requirement(f"{name}=={version.base_version}.*") for name in RELEASED_TOGETHER.get(package, ())]
    return [Requirement(f"{package}=={version}"), *with_it, *others]


def _find_distributions(environment: Path) -> set[Path]:
    return set(environment.glob("lib/python*/site-packages/*.dist-info"))


def _join_lines(texts: Iterable[object]) -> str:
    return "".join(f"{text}\n" for text in texts)
