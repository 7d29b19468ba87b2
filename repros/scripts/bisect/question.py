"""The question that a bisection answers: which releases of a package show a failure on a stack, and how it is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease, candidate_releases, fetch_files
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.engine.stacks import stack
from repros.model import Cell, Device, Environment, ExpectedOutcome, Repro, Stack, Unavailable
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import PACKAGE, CatalogueLocations
from repros.scripts.bisect.examine import MAX_RUNS, NEEDED_RUNS, Examination, examine_cell
from repros.scripts.bisect.imports import ImportFailure, imported_modules, is_documented

ANSWERS = Path(".repros/bisect")
"""Folder of the bisections' answers and logs, relative to the working directory."""


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
    def device(self) -> Device:
        """The device of the cell."""
        return self.spec.device

    @property
    def reported_packages(self) -> frozenset[str]:
        """Canonical names of the packages that the repro names."""
        return self.spec.repro.named_packages

    def is_documented(self, failure: ImportFailure) -> bool:
        """Return whether a failed import shows the documented failure."""
        return is_documented(failure, self.spec.variant.signature)

    def why_unavailable(self, environment: Environment) -> str | None:
        """Return why the cell cannot be run in an environment; None if it can."""
        item = self._plan(environment)
        return item.reason if isinstance(item, Unavailable) else None

    def examine(
        self, environment: Environment, gpus: tuple[str, ...], folder: Path, processes: Processes
    ) -> Examination:
        """Run the cell until enough runs agree.

        Args:
            environment: the environment with the release.
            gpus: the GPUs to use; empty: the first of this machine.
            folder: for logs.
            processes: receives the processes that are started.

        Raises:
            CancelledError: the bisection has ended.
        """
        cell = self._plan(environment)
        assert isinstance(cell, Cell), "an unavailable cell is not examined"
        return examine_cell(replace(cell, gpus=gpus), folder, processes)

    def _plan(self, environment: Environment) -> Cell | Unavailable:
        (item,) = plan([self.spec], lambda _: [environment])
        return item

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


def choose_cell(
    catalogue: Catalogue,
    repro: Repro,
    variant: str = "failing",
    strategy: str | None = None,
    device: str | None = None,
) -> CellSpec:
    """Return the spec of the cell to run, preferably one that needs no GPU.

    Raises:
        ReprosError: the variant is a fix, or nothing fits.
    """
    devices = (Device(device),) if device else ()
    strategies = (strategy,) if strategy else ()
    specs = select(catalogue, Selection((repro.id,), (variant,), strategies, devices))
    spec = min(specs, key=lambda spec: spec.device is Device.CUDA)
    if spec.variant.outcome is ExpectedOutcome.PASSES:
        raise ReprosError(f"{repro.id} {spec.variant.name} is a fix; expected a variant that fails.")
    return spec


def ask(
    spec: CellSpec,
    package: str,
    stack_name: str | None = None,
    good: Version | None = None,
    bad: Version | None = None,
    oldest: Version | None = None,
    newest: Version | None = None,
    places: CatalogueLocations = PACKAGE,
) -> Question:
    """Return the question for the releases on the index; :func:`build_question` explains the arguments."""
    chosen = stack(stack_name or spec.repro.home, places)
    requirements = (*spec.repro.dependencies, *spec.variant.requires)
    keep = [version for version in (good, bad) if version]
    releases = candidate_releases(package, fetch_files(package), chosen.python, requirements, keep=keep)
    return build_question(spec, chosen, package, releases, good, bad, oldest, newest)


def claimed_packages(repro: Repro) -> list[str]:
    """Return the packages whose affected range has an end that is not merely what the script needs to run."""
    needed = (*repro.dependencies, *repro.requires)
    claimed = []
    for requirement in (term.requirement for condition in repro.failing.affected for term in condition.terms):
        name = str(canonicalize_name(requirement.name))
        bounds = {
            str(specifier) for other in needed if canonicalize_name(other.name) == name for specifier in other.specifier
        }
        if {str(specifier) for specifier in requirement.specifier} - bounds and name != "python":
            claimed.append(name)
    return list(dict.fromkeys(claimed))
