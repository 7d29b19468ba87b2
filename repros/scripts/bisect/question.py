"""The question that a bisection answers: which releases of a package show a variant's failure on a stack."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from packaging.version import Version

from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.environments.releases import PackageRelease
from repros.engine.plan import CellSpec
from repros.model import Signature, Stack
from repros.model.errors import ReprosError
from repros.scripts.bisect.imports import imported_modules

ANSWERS = Path(".repros/bisect")
"""Folder of the bisections' answers and logs, relative to the working directory."""
NEEDED_RUNS, MAX_RUNS = 2, 3
"""Runs that must agree on a release, and the most runs of one release."""


class ReleaseQuestion(Protocol):
    """What a question of a package's releases consists of, whatever is asked of each of them."""

    @property
    def spec(self) -> CellSpec:
        """The cell to run."""

    @property
    def stack(self) -> Stack:
        """The source of all other packages."""

    @property
    def package(self) -> str:
        """Canonical name."""

    @property
    def releases(self) -> Sequence[PackageRelease]:
        """All candidates, oldest first."""

    @property
    def modules(self) -> Sequence[str]:
        """The modules without which a release cannot be asked."""

    @property
    def signature(self) -> Signature:
        """The failure that an import may show as well as a run."""

    def name(self, release: PackageRelease) -> str:
        """Return a release as a requirement: `lightning==2.0.1`."""

    def key(self, release: PackageRelease) -> str:
        """Return a digest of everything that a release's answer depends on."""


@dataclass(frozen=True)
class Question:
    """The cell to run, the stack to run it on, and the releases of one package to choose from."""

    spec: CellSpec
    stack: Stack
    package: str
    """Canonical name."""
    older: tuple[PackageRelease, ...]
    start: PackageRelease
    """A release that should have the failure."""
    newer: tuple[PackageRelease, ...]
    good: Version | None = None
    """A release that should not have it; None to search both sides."""

    @property
    def releases(self) -> tuple[PackageRelease, ...]:
        """All candidates, oldest first."""
        return (*self.older, self.start, *self.newer)

    @property
    def folder(self) -> Path:
        """The folder for this question's answers, relative to the working directory."""
        return ANSWERS / f"{self.spec.repro.id}-{self.package}"

    @cached_property
    def modules(self) -> list[str]:
        """The modules that the script imports, without the standard library's."""
        return imported_modules(self.spec.repro.path)

    @property
    def signature(self) -> Signature:
        """The documented failure."""
        return self.spec.variant.signature

    def name(self, release: PackageRelease) -> str:
        """Return a release as a requirement: `lightning==2.0.1`."""
        return f"{self.package}=={release.version}"

    def key(self, release: PackageRelease) -> str:
        """Return a digest of everything that a release's answer depends on."""
        variant, strategy, device = self.spec.variant, self.spec.strategy, self.spec.device
        digest = inputs(self.spec.repro, self.stack, device)
        package, runs = self.name(release), f"{NEEDED_RUNS}/{MAX_RUNS}"
        return hashlib.sha256(f"{digest} {variant.name} {strategy} {device} {package} {runs}".encode()).hexdigest()[:16]


def build_question(
    spec: CellSpec,
    stack: Stack,
    package: str,
    releases: Sequence[PackageRelease],
    good: Version | None,
    bad: Version | None,
    oldest: Version | None = None,
    newest: Version | None = None,
) -> Question:
    """Return the question for these candidates.

    Args:
        spec: the failing variant, its strategy and device.
        stack: the source of all other packages.
        package: canonical name.
        releases: the candidates, oldest first.
        good: a release without the failure; None to search both sides.
        bad: a release with it; None for the stack's own.
        oldest: the first release to consider, whatever it shows; None for the oldest candidate.
        newest: the last one, likewise.

    Raises:
        ReprosError: the stack does not have the package, or `good` or `bad` is not among the candidates.
    """
    own = locked_environment(stack).versions.get(package)
    if own is None:
        raise ReprosError(f"stack {stack.name} does not have {package}; name another with --stack.")
    releases = [release for release in releases if oldest is None or release.version >= oldest]
    releases = [release for release in releases if newest is None or release.version <= newest]
    start = find_release(package, releases, bad or Version(own))
    older = [release for release in releases if release.version < start.version]
    newer = [release for release in releases if release.version > start.version]
    if good is not None:
        bound = find_release(package, releases, good).version
        if bound < start.version:
            older, newer = [release for release in older if release.version >= bound], []
        elif bound > start.version:
            older, newer = [], [release for release in newer if release.version <= bound]
    return Question(spec, stack, package, tuple(older), start, tuple(newer), good)


def find_release(package: str, releases: Sequence[PackageRelease], version: Version) -> PackageRelease:
    """Return the candidate of a version.

    Raises:
        ReprosError: there is none.
    """
    for release in releases:
        if release.version == version:
            return release
    expected = f"a release from {releases[0].version} to {releases[-1].version}" if releases else "another package"
    raise ReprosError(f"{package} {version} cannot be tried here; expected {expected}.")
