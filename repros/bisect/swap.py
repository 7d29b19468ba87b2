"""An environment of a stack in which one package's version is exchanged, and whatever that version needs with it."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.environments.uv import run_uv
from repros.environments.withdrawn import constraints
from repros.model import Stack
from repros.stacks.lock import read_lock

_TOGETHER = {"lightning": ("pytorch-lightning",), "pytorch-lightning": ("lightning-fabric",)}
"""Distributions that are released together and import each other, although their metadata does not say so."""


class Swap:
    """Installs versions of a package into an environment, each with the same surroundings whatever came before.

    A version is resolved anew against the stack's requirements with the stack's lock as what is preferred, and then
    the environment is made to hold exactly that. So a probe depends on its version alone, not on the order of probes.
    """

    def __init__(self, stack: Stack, package: str, python: Path) -> None:
        """Exchange `package` in the environment of the interpreter `python`, which holds the stack."""
        self._stack = stack
        self._package = canonicalize_name(package)
        self._python = python

    def install(self, version: Version) -> None:
        """Install that version.

        Raises:
            UvError: it cannot be resolved with the stack's other requirements, or not be installed.
        """
        folder = self._python.parents[1]
        wanted, resolved = folder / "wanted.txt", folder / "resolved.txt"
        wanted.write_text(_lines(requirements(self._stack, self._package, version)), encoding="utf-8")
        (folder / "withdrawn.txt").write_text(constraints(), encoding="utf-8")
        resolved.write_text(_lines(self._preferred()), encoding="utf-8")
        where = ("--python", self._python)
        limits = ("--constraints", "withdrawn.txt", "--no-header", "--no-annotate", "--quiet")
        run_uv("pip", "compile", wanted.name, "--output-file", resolved.name, *limits, *where, folder=folder)
        before = _distributions(folder)
        run_uv("pip", "sync", resolved.name, *where, folder=folder)
        for distribution in _distributions(folder) - before:
            self._compile(distribution)

    def _compile(self, distribution: Path) -> None:
        """Make a distribution's bytecode anew.

        What is left of the version before counts as its own where size and time of a source agree, and wheels that
        are built to be reproducible give every file the same time.
        """
        with (distribution / "RECORD").open(encoding="utf-8", newline="") as record:
            files = [distribution.parent / row[0] for row in csv.reader(record) if row and row[0].endswith(".py")]
        sources = [file for file in files if file.exists()]
        command = [str(self._python), "-m", "compileall", "-q", "-f", "-i", "-"]
        told = "".join(f"{file}\n" for file in sources)
        # A source for another Python does not compile, and nobody imports it.
        subprocess.run(command, input=told, text=True, check=False, capture_output=True)

    def _preferred(self) -> list[str]:
        """Return the lock's pins without the package and those that go with it."""
        names = {self._package, *_TOGETHER.get(self._package, ())}
        return [str(pin) for pin in read_lock(self._stack.lock).values() if pin.name not in names]


def requirements(stack: Stack, package: str, version: Version) -> list[Requirement]:
    """Return the stack's requirements with that version of the package in the place of its own."""
    others = [r for r in stack.requirements if canonicalize_name(r.name) != package]
    with_it = [Requirement(f"{name}=={version.base_version}.*") for name in _TOGETHER.get(package, ())]
    return [Requirement(f"{package}=={version}"), *with_it, *others]


def _distributions(environment: Path) -> set[Path]:
    return set(environment.glob("lib/python*/site-packages/*.dist-info"))


def _lines(texts: Iterable[object]) -> str:
    return "".join(f"{text}\n" for text in texts)
