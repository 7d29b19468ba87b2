"""The subject of an audit: the constraints on every package that a file or an environment names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.advise.audit.markers import can_hold
from repros.model.affected import Overlap
from repros.model.packages import distributions_of
from repros.model.ranges import sample


@dataclass(frozen=True)
class Location:
    """The file and the line of a constraint."""

    file: str
    """As the user gave it; empty for an environment."""
    line: int = 1

    def __str__(self) -> str:
        """Return `requirements.txt:3`."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True)
class Constraint:
    """One version requirement for a package: a release, or a range of releases."""

    raw: str
    """As the file has it: `2.1.3`, `>=2.1,<3`, or `any release`."""
    location: Location
    version: Version | None = None
    """The only release that is allowed; None for a range."""
    releases: SpecifierSet | None = None
    """The range; None together with `version` if neither is known, as for a URL or a folder."""
    marker: str = ""
    """The environment marker, extra or group under which it applies."""
    required: bool = True
    """False for a line of a pip constraints file (`-c`): it limits the release, but does not install the package."""

    def __str__(self) -> str:
        """Return `2.1.3 (requirements.txt:3, where python_version < "3.12")`."""
        notes = ", ".join(filter(None, [str(self.location), f"where {self.marker}" if self.marker else ""]))
        return f"{self.raw} ({notes})" if notes else self.raw

    @cached_property
    def allows(self) -> tuple[object, ...]:
        """The allowed releases without the location; a post release or a build has the code of its release."""
        pin = self.version and (Version(self.version.base_version), self.version.pre, self.version.dev)
        return (pin, self.releases, self.marker, self.required)

    @property
    def installs(self) -> bool:
        """Whether it installs the package in some environment, without an extra or a group."""
        return self.required and can_hold(self.marker) is True

    def overlap_with(self, releases: SpecifierSet) -> Overlap:
        """Return the overlap of the allowed releases with a range."""
        if self.version is not None:
            if self.version.is_prerelease and _ends_at(releases, self.version):
                return Overlap.SOME  # built before or after the change of the release that it leads to
            return Overlap.ALL if releases.contains(self.version, prereleases=True) else Overlap.NONE
        if self.releases is None:
            return Overlap.ALL if not releases else Overlap.UNKNOWN
        return compare_ranges(self.releases, releases)


@dataclass(frozen=True)
class Subject:
    """All constraints of one file or environment."""

    name: str
    """The file, or the interpreter."""
    constraints: Mapping[str, tuple[Constraint, ...]]
    """By canonical package name, with `python` for the interpreter."""
    complete: bool
    """Whether an unlisted package is absent, as in locks and environments."""
    unparsed: tuple[str, ...] = field(default=())
    """A sentence for each entry that cannot be parsed; its packages are unknown."""

    def find_names(self, package: str) -> tuple[str, ...]:
        """Return the distributions in the subject that have a package's code; of those with equal releases, the first.

        Each distribution has its own copy, and it is unknown which of them a program imports.
        """
        names = tuple(name for name in distributions_of(package) if name in self.constraints)
        if not names[1:]:  # avoids a comparison of thousands of constraints
            return names
        first = {tuple(one.allows for one in self.constraints[name]): name for name in reversed(names)}
        return tuple(name for name in names if name in first.values())

    def find_name(self, package: str) -> str | None:
        """Return the first name under which the subject has the package, or None."""
        return next(iter(self.find_names(package)), None)

    def constraints_on(self, package: str) -> tuple[Constraint, ...]:
        """Return the constraints on a package, under all its names."""
        return tuple(constraint for name in self.find_names(package) for constraint in self.constraints[name])

    def overlap_with(self, package: str, releases: SpecifierSet) -> Overlap:
        """Return the overlap of a package's allowed releases with a range; an empty range asks for its presence."""
        constraints = self.constraints_on(package)
        if not constraints:
            return Overlap.NONE if self.complete else Overlap.UNKNOWN
        return self.overlap_of(constraints, releases)

    def overlap_of(self, constraints: Collection[Constraint], releases: SpecifierSet) -> Overlap:
        """Return the overlap of the releases that at least one constraint allows with a range."""
        overlaps = {constraint.overlap_with(releases) for constraint in constraints}
        if len(overlaps) > 1:
            return Overlap.UNKNOWN if overlaps == {Overlap.UNKNOWN, Overlap.NONE} else Overlap.SOME
        (only,) = overlaps
        # An extra may be left out, and a `-c` line installs nothing; the entries of a lock are installed.
        certain = self.complete or any(constraint.installs for constraint in constraints)
        return Overlap.SOME if only is Overlap.ALL and not certain else only

    def has_pins_by_marker(self, package: str) -> bool:
        """Return whether a package has several pins, each of which some environment installs."""
        names = self.find_names(package)
        pins = self.constraints[names[0]] if len(names) == 1 else ()
        by_marker = all(pin.version is not None and pin.marker and pin.installs for pin in pins)
        return len(pins) > 1 and by_marker and not self.complete

    def meets(self, requirement: Requirement) -> Overlap:
        """Return the overlap of a package's known releases with a requirement; ALL if none is known."""
        constraints = self.constraints_on(canonicalize_name(requirement.name))
        known = {constraint.overlap_with(requirement.specifier) for constraint in constraints} - {Overlap.UNKNOWN}
        return Overlap.SOME if len(known) > 1 else next(iter(known), Overlap.ALL)


@cache
def compare_ranges(allowed: SpecifierSet, affected: SpecifierSet) -> Overlap:
    """Return the overlap of the releases in `allowed` with `affected`.

    The published versions are unknown here, so the result is about all possible releases and the ranges' own versions.
    """
    candidates = [version for version in sample(allowed, affected) if _contains(allowed, version)]
    if not candidates:
        return Overlap.UNKNOWN
    inside = {_contains(affected, version) for version in candidates}
    if len(inside) > 1:
        return Overlap.SOME
    return Overlap.ALL if True in inside else Overlap.NONE


def _ends_at(releases: SpecifierSet, version: Version) -> bool:
    """Return whether a range begins or ends at the release that a pre-release leads to."""
    base = Version(version.base_version)
    return any(_leads_to(specifier.version) == base for specifier in releases)


def _leads_to(text: str) -> Version:
    return Version(Version(text.removesuffix(".*")).base_version)


def _contains(releases: SpecifierSet, version: Version) -> bool:
    return releases.contains(version, prereleases=True)
