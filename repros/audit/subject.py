"""What is audited: for every package that is named, which releases it may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.errors import ReprosError

_ALIASES = {"lightning": ("pytorch-lightning", "lightning-fabric")}
"""Older names under which the same code is released."""


class AuditError(ReprosError):
    """A file that cannot be audited."""


class Admits(StrEnum):
    """What a package's releases are to a range."""

    ALL = "all"
    SOME = "some"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Place:
    """Where something is said."""

    file: str
    """As it was given; empty for an environment."""
    line: int = 1

    def __str__(self) -> str:
        """Return `requirements.txt:3`."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True)
class Pick:
    """One thing that is said of a package: a release, or a range of them."""

    said: str
    """As it stands there: `2.1.3`, `>=2.1,<3`, or `any release`."""
    place: Place
    version: Version | None = None
    releases: SpecifierSet | None = None
    """Without a version and without this, nothing is known: a link, a folder."""
    marker: str = ""
    """Under what condition it holds; other picks may hold under others."""
    required: bool = True
    """False for a constraint: it says which release, but not that there is one."""

    def admits(self, releases: SpecifierSet) -> Admits:
        """Whether the pick lies in the range."""
        if self.version is not None:
            return Admits.ALL if releases.contains(self.version, prereleases=True) else Admits.NONE
        if self.releases is None:
            return Admits.ALL if not releases else Admits.UNKNOWN
        return overlap(self.releases, releases)


@dataclass(frozen=True)
class Subject:
    """Everything that one source says."""

    name: str
    """The file, or the interpreter."""
    picks: Mapping[str, tuple[Pick, ...]]
    """By canonical package name; `python` is one."""
    complete: bool
    """Whether a package that is not named is not there: true of locks and environments."""
    unread: tuple[str, ...] = field(default=())
    """What could not be understood, each as a sentence; what it names is unknown."""

    def named(self, package: str) -> str | None:
        """Return the name under which the package is there, if it is."""
        name = canonicalize_name(package)
        return next((known for known in (name, *_ALIASES.get(name, ())) if known in self.picks), None)

    def admits(self, package: str, releases: SpecifierSet) -> Admits:
        """Whether what is said of a package lies in a range; an empty range asks whether the package is there."""
        name = self.named(package)
        if name is None:
            return Admits.NONE if self.complete else Admits.UNKNOWN
        picks = self.picks[name]
        found = {pick.admits(releases) for pick in picks}
        if len(found) > 1:
            return Admits.UNKNOWN if found == {Admits.UNKNOWN, Admits.NONE} else Admits.SOME
        (only,) = found
        # A marker may hold nowhere, and a constraint need not be for something that is there; a lock's entries are.
        certain = self.complete or any(pick.required and not pick.marker for pick in picks)
        return Admits.SOME if only is Admits.ALL and not certain else only


def overlap(said: SpecifierSet, releases: SpecifierSet) -> Admits:
    """Return whether all, some or none of the releases that one range admits lie in another.

    Neither knows what was really released, so the answer is of all versions there could be. Ranges change at
    the versions they name and nowhere else; it is enough to ask at these, just below and just above each.
    """
    admitted = [version for version in _telling(said, releases) if said.contains(version, prereleases=True)]
    within = [releases.contains(version, prereleases=True) for version in admitted]
    if not admitted:
        return Admits.UNKNOWN
    return Admits.ALL if all(within) else Admits.SOME if any(within) else Admits.NONE


def _telling(*ranges: SpecifierSet) -> Iterator[Version]:
    """Yield final releases on, just below and just above every version that the ranges name."""
    yield Version("0")
    for specifier in (specifier for one in ranges for specifier in one):
        try:
            version = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion:  # `===` takes any text
            continue
        yield version
        release = version.release
        for length in range(1, len(release) + 1):
            head = release[:length]
            # Above all that begin as it does, and below: 2.4 has 2.4.9999 and 2.3.9999 beside it.
            yield _version((*head, 9999))
            yield _version((*head[:-1], head[-1] + 1))
            if head[-1]:
                yield _version((*head[:-1], head[-1] - 1, 9999))
        yield _version((*release, 0, 1))
    yield Version("99999")


def _version(release: Iterable[int]) -> Version:
    return Version(".".join(map(str, release)))
