"""Replacement of one package's version, with the dependencies of that version, in an environment of a stack."""

from __future__ import annotations

import csv
import datetime as dt
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.environments.compile import RESOLVED, compile_requirements, exchange, released_together
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.store import build_of
from repros.engine.environments.uv import UvError, run_uv
from repros.model import Stack

_TORCH_OWN = ("nvidia-", "cuda-", "triton")
"""Name prefixes of packages that only torch's CUDA build needs; each build pins its own."""


class Swap:
    """Installer of one package's versions into one environment.

    Each version is resolved anew against the stack's requirements, with the stack's lock as the preferred versions, and
    the environment is synchronised to exactly that. So a probe depends on its version alone, not on earlier probes.
    """

    def __init__(self, stack: Stack, package: str, python: Path, imported: Collection[str] | None = None) -> None:
        """Prepare to replace a package.

        Args:
            stack: the stack.
            package: the package.
            python: the interpreter of an environment with the stack's packages.
            imported: canonical names of the packages that the program imports; the stack's others are left out where
                no resolution has them. None: none is left out.
        """
        self._stack = stack
        self._package = canonicalize_name(package)
        self._python = python
        self._imported = imported
        self._find_links = build_of(stack).pages
        self._swapped = {self._package, *released_together(self._package)}
        installed = _read_distributions(python)
        own = {str(canonicalize_name(requirement.name)) for requirement in stack.requirements}
        self._own = {*own, *(name for name in installed if name.startswith(_TORCH_OWN))} - self._swapped
        """The stack's own other requirements, and what a CUDA build of torch pins."""
        self._needed = _close(self._own, installed, stack.python) - self._swapped
        """Those, and what they need."""

    @property
    def versions(self) -> dict[str, str]:
        """The installed versions by canonical name."""
        return {name: distribution.version for name, distribution in _read_distributions(self._python).items()}

    def install(self, release: PackageRelease, *, as_of_its_day: bool = False) -> tuple[str, ...]:
        """Install a release, with dependencies that other days give alike.

        Args:
            release: the release.
            as_of_its_day: whether what only follows from the stack's requirements is no newer than the release. If that
                contradicts itself, what the stack's other packages need may be newer. Otherwise the stack's lock counts
                and, for what is not in it, the day until which the lock was made, or that of a newer release.

        Returns:
            The stack's requirements that were left out, since the program imports none of them and they conflict.

        Raises:
            UvError: it cannot be resolved with the stack's other requirements, or cannot be installed.
        """
        day = release.date if as_of_its_day else max(self._stack.until, release.date)
        first = self._date_limits(day, self._own if as_of_its_day else ())
        second = self._date_limits(day, self._needed) if as_of_its_day else ()  # an index may know no days
        left_out = self._resolve_first(release.version, first, second)
        folder = self._python.parents[1]
        before = _find_distributions(folder)
        self._run_uv("pip", "sync", RESOLVED)
        for distribution in _find_distributions(folder) - before:
            _remove_bytecode(distribution)
        return left_out

    def _resolve_first(self, version: Version, *limits: Iterable[str]) -> tuple[str, ...]:
        """Resolve by the first limits that have a solution, at last without the requirements that are not imported.

        Returns:
            The requirements that were left out.
        """
        wanted = swapped_requirements(self._stack, self._package, version)
        unused = [requirement for requirement in wanted if self._is_unused(requirement)]
        tries = [(wanted, limit) for limit in limits]
        if unused:
            tries.append(([requirement for requirement in wanted if requirement not in unused], limits[-1]))
        for number, (requirements, limit) in enumerate(tries, 1):
            try:
                self._resolve(requirements, limit)
            except UvError as error:
                if not error.is_without_solution or number == len(tries):
                    raise
            else:
                return () if requirements is wanted else tuple(requirement.name for requirement in unused)
        return ()

    def _is_unused(self, requirement: Requirement) -> bool:
        """Return whether the program imports neither a package nor one that is exchanged with it."""
        name = canonicalize_name(requirement.name)
        return self._imported is not None and name not in {*self._imported, *self._swapped, "torch"}

    def _resolve(self, requirements: Iterable[Requirement], limits: Iterable[str]) -> None:
        """Write into `RESOLVED` what to install."""
        compile_requirements(
            self._python.parents[1],
            requirements,
            *("--python", self._python),
            *limits,
            preferred=self._preferred_pins(),
            find_links=self._find_links,
        )

    def _run_uv(self, *words: str) -> None:
        folder = self._python.parents[1]
        run_uv(*words, "--python", self._python, folder=folder, find_links=self._find_links)

    def _date_limits(self, as_of: dt.date, exempt: Iterable[str]) -> list[str]:
        """Return uv's options for a day, whose last hour is included: the release itself counts as of its own."""
        late = f"{self._stack.until}T23:59:59Z"
        limits = ["--exclude-newer", f"{as_of}T23:59:59Z"]
        return [*limits, *(word for name in sorted(exempt) for word in ("--exclude-newer-package", f"{name}={late}"))]

    def _preferred_pins(self) -> list[str]:
        """Return the lock's pins, without the package and the packages released with it."""
        return [str(pin) for pin in self._stack.pins.values() if pin.name not in self._swapped]


def swapped_requirements(stack: Stack, package: str, version: Version) -> list[Requirement]:
    """Return the stack's requirements, with this version of the package instead of the stack's own."""
    return exchange(stack.requirements, [Requirement(f"{package}=={version}")])


def _remove_bytecode(distribution: Path) -> None:
    """Remove the bytecode in the folders of a distribution that has just been installed.

    Python takes the previous version's bytecode for valid if a source has the same size and time, and wheels that are
    built to be reproducible give every file the same time. What is imported next is compiled anew.
    """
    with (distribution / "RECORD").open(encoding="utf-8", newline="") as record:
        folders = {
            (distribution.parent / row[0]).parent for row in csv.reader(record) if row and row[0].endswith(".py")
        }
    for folder in folders:
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def _read_distributions(python: Path) -> Mapping[str, Distribution]:
    """Return the distributions in an interpreter's environment, by canonical name."""
    paths = [str(place) for place in python.parents[1].glob("lib/python*/site-packages")]
    return {str(canonicalize_name(distribution.name)): distribution for distribution in distributions(path=paths)}


def _close(names: Iterable[str], installed: Mapping[str, Distribution], python: str) -> set[str]:
    """Return the names, and those of their installed dependencies, direct and transitive."""
    needed_names, new = set[str](), set(names)
    while new:
        needed_names |= new
        new = {needed for name in new & installed.keys() for needed in _needs(installed[name], python)} - needed_names
    return needed_names


def _needs(distribution: Distribution, python: str) -> Iterator[str]:
    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:  # from before packaging refused it
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": "", "python_version": python}):
            yield str(canonicalize_name(requirement.name))


def _find_distributions(environment: Path) -> set[Path]:
    return set(environment.glob("lib/python*/site-packages/*.dist-info"))
