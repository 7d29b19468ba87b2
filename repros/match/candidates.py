"""Failures against the catalogue -> the repros that they may be, how sure that is, and what speaks for it.

An exception is held against class and message first. Then the frames: where a repro names functions that stand on the
stack of its failure, a whole traceback without any of them is another failure. Then the versions that the log tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.engine.consequences import is_consequence
from repros.match.affected import Affected, State, affected
from repros.match.failures import Failure, Link
from repros.match.index import Entry, SignatureIndex, SignatureMatch
from repros.model import Repro


class Confidence(StrEnum):
    """How sure it is that a log shows a documented failure."""

    CERTAIN = "certain"
    """The traceback runs through the repro's own script; or class, message and a telling frame agree, no other repro
    has this message here, and the versions in the log are affected."""
    LIKELY = "likely"
    """Class and message agree, so do the frames if the repro names any, and no other repro has this message here."""
    POSSIBLE = "possible"
    """Class and message agree, but the frames are not to be seen, another repro has this message too, or the versions
    in the log are not affected."""


_ORDER = list(Confidence)


@dataclass(frozen=True)
class Sighting:
    """An exception in the log that matches a repro's signature."""

    failure: Failure
    link: Link
    matched: SignatureMatch
    frames: tuple[str, ...]
    """The functions named by the repro that stand on its stack."""
    own: bool
    """Whether its traceback runs through the repro's own script."""
    rivals: frozenset[str] = frozenset()
    """Ids of the other repros that this exception may be."""

    @property
    def id(self) -> str:
        """The repro's."""
        return self.matched.entry.repro.id

    @property
    def is_ruled_out(self) -> bool:
        """Whether the stack says that it is something else, or nothing but the message says that it is this."""
        if self.frames:
            return False
        return is_consequence(self.link.raised) or (self.link.whole and bool(self.matched.entry.signature.frames))

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Better evidence first."""
        return (not self.own, not self.frames, not self.link.whole, self.link.line)

    @property
    def agrees(self) -> bool:
        """Whether the frames speak for it as far as the repro names any."""
        return bool(self.frames) or not self.matched.entry.signature.frames


@dataclass(frozen=True)
class Candidate:
    """A repro that the log may show."""

    repro: Repro
    confidence: Confidence
    sightings: tuple[Sighting, ...]
    """Best evidence first, at least one."""
    affected: Affected
    rivals: tuple[str, ...]
    """Ids of the other repros that have the message of its best sighting."""


@dataclass(frozen=True)
class RuledOut:
    """A repro whose message the log has, on a stack that is not its."""

    entry: Entry
    link: Link


def candidates(
    failures: Iterable[Failure], catalogue: SignatureIndex, versions: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[Candidate, ...], tuple[RuledOut, ...]]:
    """Return the repros that the failures may be, the surest first, and those that have only the message in common."""
    seen: dict[str, list[Sighting]] = {}
    ruled_out: dict[str, RuledOut] = {}
    for failure in failures:
        for link in failure.links:
            matched = list(catalogue.matched(link.raised))
            sightings = _sightings(failure, link, matched)
            for sighting in sightings:
                seen.setdefault(sighting.id, []).append(sighting)
            for one in matched:
                if one.entry.repro.id not in [sighting.id for sighting in sightings]:
                    ruled_out.setdefault(one.entry.repro.id, RuledOut(one.entry, link))
    own = {id_ for id_, sightings in seen.items() if any(sighting.own for sighting in sightings)}
    found = [_candidate(sightings, versions) for sightings in seen.values()]
    # Where one of the catalogue's scripts failed, the same message without its frames, in a summary, is that one's too.
    kept = [one for one in found if one.repro.id in own or not own.intersection(one.rivals)]
    return tuple(sorted(kept, key=_surest_first)), tuple(out for id_, out in ruled_out.items() if id_ not in seen)


def _surest_first(one: Candidate) -> tuple[object, ...]:
    best = one.sightings[0]
    return (_ORDER.index(one.confidence), -len(best.matched.matched_text), one.affected.state.order, one.repro.id)


def _sightings(failure: Failure, link: Link, found: Iterable[SignatureMatch]) -> list[Sighting]:
    """Return the sightings that the stack does not rule out; in a repro's own script it is that one and no other."""
    stack = [_Frame.of(frame) for frame in failure.frames] if found else []
    every = [_sighting(failure, link, matched, stack) for matched in found]
    kept = [sighting for sighting in every if sighting.own] or [one for one in every if not one.is_ruled_out]
    ids = frozenset(sighting.id for sighting in kept)
    return [replace(sighting, rivals=ids - {sighting.id}) for sighting in kept]


def _sighting(failure: Failure, link: Link, matched: SignatureMatch, stack: Iterable[_Frame]) -> Sighting:
    named = matched.entry.signature.frames
    telling = tuple(name for name in named if any(frame.is_named(name) for frame in stack))
    script = f"/{matched.entry.repro.path.name}"
    return Sighting(failure, link, matched, telling, any(frame.file.endswith(script) for frame in stack))


@dataclass(frozen=True)
class _Frame:
    file: str
    """With a slash before it, whatever the system it was written on."""
    function: str

    @classmethod
    def of(cls, told: str) -> _Frame:
        place, _, function = told.rpartition(" ")
        return cls("/" + place.rpartition(":")[0].replace("\\", "/"), function)

    def is_named(self, name: str) -> bool:
        """Whether this is `new_forward`, or `accelerate/hooks.py:new_forward`."""
        file, _, function = name.rpartition(":")
        return function == self.function and (not file or self.file.endswith(f"/{file}"))


def _candidate(sightings: Iterable[Sighting], versions: Mapping[str, tuple[str, ...]]) -> Candidate:
    ordered = tuple(sorted(sightings, key=lambda sighting: sighting.rank))
    best = ordered[0]
    entry = best.matched.entry
    concerned = affected(entry.repro, entry.variants, versions)
    if best.own:
        confidence = Confidence.CERTAIN
    elif best.rivals or not best.agrees or concerned.state is State.NOT_AFFECTED:
        confidence = Confidence.POSSIBLE
    elif best.frames and concerned.state is State.AFFECTED and concerned.told:
        confidence = Confidence.CERTAIN
    else:
        confidence = Confidence.LIKELY
    return Candidate(entry.repro, confidence, ordered, concerned, tuple(sorted(best.rivals)))
