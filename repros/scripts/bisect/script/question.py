"""The question of a script's bisection: which releases of a package on a stack make a program behave differently."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.digest.inputs import engine, simulator
from repros.engine.environment import locked_environment
from repros.engine.environments.index import version_of
from repros.engine.environments.nightlies import fetch_nightlies
from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease, candidate_releases, fetch_files
from repros.engine.plan import why_unavailable
from repros.model import Device, Environment, Stack
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.examine import Examination
from repros.scripts.bisect.imports import ImportFailure
from repros.scripts.bisect.question import ANSWERS, Question, find_release
from repros.scripts.bisect.script.examine import examine_script
from repros.scripts.bisect.script.patterns import Patterns
from repros.scripts.try_.job import device_of
from repros.scripts.try_.task import Task

_SCHEMA = 1
"""Raised when the same run would be described in other words; cached answers are then computed again."""


@dataclass(frozen=True)
class ScriptQuestion:
    """A program, the stack to run it on, and the releases of one package to choose from."""

    task: Task
    patterns: Patterns
    stack: Stack
    package: str
    """Canonical name."""
    releases: tuple[PackageRelease, ...]
    """All candidates, oldest first; at least two."""
    runs: int
    """Number of runs of one release that must show the same."""
    oldest: bool = False
    """Whether the user has named the first candidate, which must then give an answer."""
    newest: bool = False
    """Whether the user has named the last one."""

    @property
    def device(self) -> Device:
        """The device of the program."""
        return device_of(self.task)

    @property
    def modules(self) -> Sequence[str]:
        """The modules that the program imports before anything else, including those of other packages."""
        return self.task.needs.modules

    @property
    def reported_packages(self) -> frozenset[str]:
        """Canonical names of the packages that the program lists."""
        return frozenset(canonicalize_name(requirement.name) for requirement in self.task.needs.listed)

    def is_documented(self, failure: ImportFailure) -> bool:  # noqa: ARG002 - the same for every failure
        """Return False: no failure of an import counts as an answer."""
        return False

    def why_unavailable(self, environment: Environment) -> str | None:
        """Return why the program cannot be run in an environment; None if it can."""
        return why_unavailable(environment, self.task.needs.listed, self.device, self.task.options.ranks)

    def examine(
        self,
        environment: Environment,
        gpus: tuple[str, ...],  # noqa: ARG002 - it has simulated ones
        folder: Path,
        processes: Processes,
    ) -> Examination:
        """Run the program; :meth:`repros.scripts.bisect.question.Question.examine` explains the arguments."""
        return examine_script(self.task, self.patterns, self.package, self.runs, environment, folder, processes)

    @property
    def folder(self) -> Path:
        """The folder for this program's answers, relative to the working directory."""
        return ANSWERS / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.task.script.name)[:60]}-{self.package}"

    @property
    def own(self) -> int | None:
        """The number of the stack's own release, if it is a candidate."""
        version = locked_environment(self.stack).versions.get(self.package)
        indices = (
            index for index, release in enumerate(self.releases) if version and release.version == Version(version)
        )
        return next(indices, None)

    def name(self, release: PackageRelease) -> str:
        """Return a release as a requirement: `lightning==2.0.1`."""
        return f"{self.package}=={release.version}"

    def key(self, release: PackageRelease) -> str:
        """Return a digest of everything that a release's answer depends on."""
        return hashlib.sha256(f"{self._digest} {self.name(release)}".encode()).hexdigest()[:16]

    def can_compare(self, answer: ReleaseAnswer) -> bool:
        """Return whether a release gave an answer: with both patterns one of them, otherwise any ending."""
        return answer.shown in self.patterns.labels if self.patterns.decide else bool(answer.shown)

    @cached_property
    def _digest(self) -> str:
        task = self.task
        parts = (
            *(_SCHEMA, task.script.digest(), task.arguments, task.options, task.limits.seconds, task.sandbox.network),
            *(self.patterns, self.runs, self.stack.python, sorted(map(str, self.stack.pins.values())), engine()),
            simulator() if task.options.gpus is not None else None,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()


ReleaseQuestion = Question | ScriptQuestion
"""A question about the releases of a package, whatever program is run on each of them."""


def ask_script(
    task: Task,
    patterns: Patterns,
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
        patterns: searched in its output.
        stack: the source of all other packages, and of the Python.
        package: canonical name.
        oldest: the first release to compare, a pre-release too; None for the oldest that gives an answer.
        newest: the last one, likewise.
        runs: number of runs of one release that must show the same.
        index: the address of an index whose nightly releases are further candidates.

    Raises:
        ReprosError: the index does not answer or lacks the package, or a named release is not one of it.
    """
    named = [version for version in (oldest, newest) if version]
    nightlies = fetch_nightlies(package, index) if index else []
    keep = [*named, *(version for file in nightlies if (version := version_of(file.name)))]
    files = [*fetch_files(package), *nightlies]
    releases: Sequence[PackageRelease] = candidate_releases(package, files, stack.python, keep=keep)
    for version in named:
        find_release(package, releases, version)
    chosen = tuple(
        release
        for release in releases
        if (oldest is None or release.version >= oldest) and (newest is None or release.version <= newest)
    )
    if len(chosen) < 2:  # noqa: PLR2004 - what is compared
        versions = ", ".join(str(release.version) for release in chosen) or "none"
        raise ReprosError(
            f"expected at least two releases of {package} for Python {stack.python}, and found {versions}."
        )
    return ScriptQuestion(task, patterns, stack, package, chosen, runs, oldest is not None, newest is not None)
