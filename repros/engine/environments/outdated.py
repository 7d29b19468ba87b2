"""Pins of a stack for which the package index has a newer release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.environments.releases import PackageRelease, candidate_releases, fetch_files
from repros.model.stack import Stack

DAYS_TO_FOLLOW = 31
"""Maximum age, in days, of a newer release: transformers alone has a release in most weeks."""


@dataclass(frozen=True)
class Lag:
    """A pin with newer releases."""

    package: str
    """Canonical name."""
    pinned: Version
    first: PackageRelease
    """The oldest newer release."""
    newest: Version

    def days(self, today: dt.date) -> int:
        """Return the number of days since the first newer release."""
        return (today - self.first.date).days

    def is_overdue(self, today: dt.date) -> bool:
        """Return whether the first newer release is older than :data:`DAYS_TO_FOLLOW` days."""
        return self.days(today) > DAYS_TO_FOLLOW


def find_lags(stack: Stack, packages: Iterable[str]) -> Iterator[Lag]:
    """Yield the pins of a stack with newer releases, sorted by package.

    Pre-releases, yanked and withdrawn releases, and releases without a file for the stack's Python are ignored. So are
    releases that the stack excludes next to its pin: `torch==2.15.0,<2.16` means that 2.16 conflicts with other pins.

    Args:
        stack: the stack, with its lock.
        packages: packages in addition to those of the stack's requirements; those not in the lock are ignored.

    Raises:
        ReprosError: the stack has no lock, or the index does not answer, or gives no dates.
    """
    pins = stack.pins
    names = {canonicalize_name(name) for name in (*packages, *(wanted.name for wanted in stack.requirements))}
    bounds = [without_pin(wanted) for wanted in stack.requirements]
    for package in sorted(names & pins.keys()):
        pinned = Version(pins[package].version)
        releases = candidate_releases(package, fetch_files(package), stack.python, bounds)
        newer = [release for release in releases if release.version > pinned]
        if newer:
            yield Lag(package, pinned, min(newer, key=lambda release: release.date), newer[-1].version)


def without_pin(wanted: Requirement) -> Requirement:
    """Return a requirement without its pin, with its other bounds only."""
    bounds = SpecifierSet(",".join(str(part) for part in wanted.specifier if part.operator not in {"==", "==="}))
    return Requirement(f"{wanted.name}{bounds}")
