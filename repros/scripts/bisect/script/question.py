"""The question of a script's bisection: what a program shows on the releases of one package on a stack."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.version import Version

from repros.engine.digest.inputs import engine, simulator
from repros.engine.environment import locked_environment
from repros.engine.environments.index import version_of
from repros.engine.environments.nightlies import fetch_nightlies
from repros.engine.environments.releases import PackageRelease, candidate_releases, fetch_files
from repros.engine.plan import CellSpec
from repros.model import Signature, Stack
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.question import ANSWERS, find_release
from repros.scripts.bisect.script.marks import Marks
from repros.scripts.try_.cell import as_spec
from repros.scripts.try_.run import Task

_SCHEMA = 1
"""Raised when the same run would be described in other words: kept answers are then asked again."""


@dataclass(frozen=True)
class ScriptQuestion:
    """A program, the stack to run it on, and the releases of one package to choose from."""

    task: Task
    marks: Marks
    stack: Stack
    package: str
    """Canonical name."""
    releases: tuple[PackageRelease, ...]
    """All candidates, oldest first; at least two."""
    runs: int
    """How many runs of one release must show the same."""
    oldest: bool = False
    """Whether the user has named the first candidate, which must then give an answer."""
    newest: bool = False
    """Whether the user has named the last one."""

    @cached_property
    def spec(self) -> CellSpec:
        """The cell to run."""
        return as_spec(self.task.script.name, self.task.needs, self.task.options, self.task.limits)

    @property
    def modules(self) -> Sequence[str]:
        """The modules that the program imports before anything else; those of other packages, too."""
        return self.task.needs.modules

    @property
    def signature(self) -> Signature:
        """No failure of an import counts as an answer."""
        return self.spec.variant.signature

    @property
    def folder(self) -> Path:
        """The folder for this program's answers, relative to the working directory."""
        return ANSWERS / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.task.script.name)[:60]}-{self.package}"

    @property
    def own(self) -> int | None:
        """The number of the stack's own release, if it is a candidate."""
        version = locked_environment(self.stack).versions.get(self.package)
        found = (number for number, each in enumerate(self.releases) if version and each.version == Version(version))
        return next(found, None)

    def name(self, release: PackageRelease) -> str:
        """Return a release as a requirement: `lightning==2.0.1`."""
        return f"{self.package}=={release.version}"

    def key(self, release: PackageRelease) -> str:
        """Return a digest of everything that a release's answer depends on."""
        return hashlib.sha256(f"{self._digest} {self.name(release)}".encode()).hexdigest()[:16]

    def can_compare(self, found: ReleaseAnswer) -> bool:
        """Return whether a release gave an answer; with both marks, one of them, and else any ending is one."""
        return found.shown in self.marks.labels if self.marks.decide else bool(found.shown)

    @cached_property
    def _digest(self) -> str:
        task = self.task
        parts = (
            *(_SCHEMA, task.script.digest(), task.arguments, task.options, task.limits.seconds, task.walls.network),
            *(self.marks, self.runs, self.stack.python, sorted(map(str, self.stack.pins.values())), engine()),
            simulator() if task.options.gpus is not None else None,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def ask_script(
    task: Task,
    marks: Marks,
    stack: Stack,
    package: str,
    oldest: Version | None = None,
    newest: Version | None = None,
    runs: int = 2,
    index: str | None = None,
) -> ScriptQuestion:
    """Return the question for the releases on the index.

    Args:
        task: the program, and how to run it.
        marks: what to look for in its output.
        stack: the source of all other packages, and of the Python.
        package: canonical name.
        oldest: the first release to compare, a pre-release too; None for the oldest that gives an answer.
        newest: the last one, likewise.
        runs: how many runs of one release must show the same.
        index: the address of an index whose nightly releases are candidates, too.

    Raises:
        ReprosError: the index does not answer or does not have the package, or a release named is none of it.
    """
    named = [version for version in (oldest, newest) if version]
    nightlies = fetch_nightlies(package, index) if index else []
    keep = [*named, *(version for each in nightlies if (version := version_of(each.name)))]
    files = [*fetch_files(package), *nightlies]
    releases: Sequence[PackageRelease] = candidate_releases(package, files, stack.python, keep=keep)
    for version in named:
        find_release(package, releases, version)
    chosen = tuple(
        each
        for each in releases
        if (oldest is None or each.version >= oldest) and (newest is None or each.version <= newest)
    )
    if len(chosen) < 2:  # noqa: PLR2004 - what is compared
        found = ", ".join(str(each.version) for each in chosen) or "none"
        raise ReprosError(f"expected at least two releases of {package} for Python {stack.python}, and found {found}.")
    return ScriptQuestion(task, marks, stack, package, chosen, runs, oldest is not None, newest is not None)
