"""Version ranges as sorted intervals: affected and unaffected releases, and their text.

The forms of a header's `affected` that compare versions are derived here: the releases with a fix, the releases before
a failure, the events of an OSV record. `packaging` decides whether a version is in a range. This module finds only the
versions at which that answer may change, from the operators of PEP 440. (`packaging.ranges`, since 26.3, has such sets
of versions but does not expose their bounds.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from repros.model.affected import AnyOf, Term, every_release_of, packages_of

FIRST = Version("0.dev0")
"""The lowest version."""
_LAST_POST = 10**9
"""Above the number of any post-release. `>2.1` excludes the post-releases of 2.1: it begins at `2.1.post1000000000`."""


@dataclass(frozen=True)
class Interval:
    """A half-open interval of versions: `start <= version < end`."""

    start: Version
    end: Version | None
    """None: unbounded."""

    def __contains__(self, version: Version) -> bool:
        """Return whether a version is in the interval."""
        return self.start <= version and (self.end is None or version < self.end)

    @property
    def bounds(self) -> str:
        """The interval's releases as PEP 440 bounds: `>=2.0.8,<2.1`; empty if unbounded.

        The bounds are a subset of the interval. They may lack a pre-release, a post-release or a build at an end of
        the interval, since `<2.1` excludes 2.1rc1, and `>2.1` excludes 2.1.post1.
        """
        if self.end == _after(self.start):
            return f"=={self.start}"
        lower = "" if self.start == FIRST else _bound(self.start, ">=", ">")
        upper = "" if self.end is None else _bound(self.end, "<", "<=")
        return ",".join(filter(None, [lower, upper]))


@dataclass(frozen=True)
class Releases:
    """An interval of one package's releases."""

    package: str
    interval: Interval

    def __str__(self) -> str:
        """Return `lightning>=2.0.8,<2.1`."""
        bounds = self.interval.bounds
        return f"{self.package}{bounds}" if bounds else every_release_of([self.package])


def intervals(holds: Callable[[Version], bool], ranges: Iterable[SpecifierSet]) -> tuple[Interval, ...]:
    """Return the sorted, disjoint, non-adjacent intervals of the versions for which a predicate holds.

    Args:
        holds: the predicate; it depends only on whether the version is in each of the ranges.
        ranges: the ranges.
    """
    merged: list[Interval] = []
    for start, end, inside in _segments(ranges):
        if not holds(inside):
            continue
        joined = merged.pop().start if merged and merged[-1].end == start else start
        merged.append(Interval(joined, end))
    return tuple(merged)


def sample(*ranges: SpecifierSet) -> list[Version]:
    """Return a version of each equivalence class of releases, which are in the same ranges.

    These are the versions that the ranges name, and one release of each interval between two cuts, if it has one.
    """
    versions = {
        version for conjunction in ranges for specifier in conjunction if (version := _named_version(specifier))
    }
    for start, end, inside in _segments(ranges):
        releases = (Version(inside.base_version), Version(_spell(inside, post=inside.post)))
        versions |= {*[version for version in releases if version in Interval(start, end)][:1]}
    return sorted(versions)


def affected_intervals(conditions: Iterable[AnyOf], package: str) -> tuple[Interval, ...]:
    """Return the versions of a package that meet the conditions on this package alone."""
    own = [condition for condition in conditions if packages_of([condition]) == (package,)]
    return intervals(lambda version: _hold(own, version), _ranges(own))


def unaffected_releases(conditions: Iterable[AnyOf]) -> list[tuple[Releases, ...]]:
    """Return the unaffected releases, as alternatives.

    Each entry suffices alone. It has releases of one package, or of several packages that are needed together, if a
    condition has alternatives of several packages. Intervals without a release, such as the pre-releases between
    `<2.1` and `>=2.1`, are omitted.
    """
    known = list(conditions)
    by_packages: dict[tuple[str, ...], list[AnyOf]] = {}
    for condition in known:
        by_packages.setdefault(packages_of([condition]), []).append(condition)
    alternatives: list[tuple[Releases, ...]] = []
    for packages, group in by_packages.items():
        if len(packages) == 1:
            alternatives += ((releases,) for releases in _free(packages[0], group))
        for condition in group if len(packages) > 1 else ():
            alternatives += product(*(_free(name, [alternatives_of(condition, name)]) for name in packages))
    return alternatives


def alternatives_of(condition: AnyOf, package: str) -> AnyOf:
    """Return the alternatives of a condition that name a package."""
    return AnyOf(tuple(term for term in condition.terms if term.package == package))


def _free(package: str, conditions: Sequence[AnyOf]) -> Iterator[Releases]:
    for interval in intervals(lambda version: not _hold(conditions, version), _ranges(conditions)):
        bounds = SpecifierSet(interval.bounds)
        if intervals(partial(bounds.contains, prereleases=True), [bounds]):
            yield Releases(package, interval)


def _hold(conditions: Iterable[AnyOf], version: Version) -> bool:
    """Return whether conditions on one package hold for an installed version of it."""
    return all(any(_holds(term, version) for term in condition.terms) for condition in conditions)


def _holds(term: Term, version: Version) -> bool:
    return term.requirement.specifier.contains(version, prereleases=True) is not term.negated


def _ranges(conditions: Iterable[AnyOf]) -> list[SpecifierSet]:
    return [term.requirement.specifier for condition in conditions for term in condition.terms]


def _segments(ranges: Iterable[SpecifierSet]) -> Iterator[tuple[Version, Version | None, Version]]:
    """Yield the intervals between cuts, in which each range's answer is constant: start, end, and a version inside.

    They partition all versions.
    """
    cuts = {FIRST, *(cut for conjunction in ranges for specifier in conjunction for cut in _cuts(specifier))}
    starts = sorted(cuts)
    longest = max(len(start.release) for start in starts)
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        is_after_posts = start.post == _LAST_POST
        just_above = f"{start.base_version}{'.0' * (longest - len(start.release))}.1"
        yield start, end, Version(just_above) if is_after_posts else start


def _cuts(specifier: Specifier) -> Iterator[Version]:
    """Yield a superset of the versions at which a specifier's answer changes.

    `<2.1` ends at 2.1.dev0, before the first pre-release. `<=2.1` ends at 2.1.post0.dev0, after all builds of 2.1.
    `>2.1` begins after the last post-release of 2.1. `==2.1.*` and `~=2.1.0` end where the next series begins.
    """
    version = _named_version(specifier)
    if version is None:
        return
    base = Version(version.base_version)
    yield from (Version(_spell(base, dev=0)), _after(base), Version(_spell(base, post=_LAST_POST)))
    yield from (version, _after(version))
    if version.post is not None:
        # `<2.1.post1` excludes the development releases of 2.1.post1.
        yield Version(_spell(version, post=version.post, dev=0))
    if version.pre:
        letter, number = version.pre
        yield from (_after(Version(_spell(version))), Version(f"{base}{letter}{number + 1}.dev0"))
    release = version.release[:-1] if specifier.operator == "~=" else version.release
    following = ".".join(map(str, (*release[:-1], release[-1] + 1)))
    yield Version(f"{version.epoch}!{following}.dev0")


def _named_version(specifier: Specifier) -> Version | None:
    """Return the version in a specifier; None for text that is not a version, which `===` allows."""
    try:
        return Version(specifier.version.removesuffix(".*"))
    except InvalidVersion:
        return None


def _after(version: Version) -> Version:
    """Return the lowest version above a version and its builds (`2.1+cpu`); for a build, above that build."""
    if version.local:
        return Version(f"{version}.0")
    if version.dev is not None:
        return Version(_spell(version, post=version.post, dev=version.dev + 1))
    return Version(_spell(version, post=0 if version.post is None else version.post + 1, dev=0))


def _bound(cut: Version, at: str, past: str) -> str:
    """Return the PEP 440 bound of a cut: operator `at` with the cut, or `past` with the version below it."""
    if cut.post == _LAST_POST:
        return f"{past}{_spell(cut)}"
    if cut.post is not None and cut.dev == 0:
        return f"{past}{_spell(cut, post=cut.post - 1 if cut.post else None)}"
    return f"{at}{cut.base_version if cut.dev == 0 and cut.pre is None else cut}"


def _spell(version: Version, *, post: int | None = None, dev: int | None = None) -> str:
    """Return a version with its post-release and development release replaced."""
    parts = [version.base_version, *map(str, version.pre or ())]
    parts += [f".post{post}"] if post is not None else []
    parts += [f".dev{dev}"] if dev is not None else []
    return "".join(parts)
