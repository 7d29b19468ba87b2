"""Decide which repros the failures in a log may be, how certain that is, and why.

First each exception's class and message are compared with the signatures. Then the frames: if a repro names functions
that are on the stack of its failure, a whole traceback without any of them is a different failure. Then the versions
that the log states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.engine.consequences import is_consequence
from repros.match.affected import AffectedCheck, AffectedState, check_affected
from repros.match.failures import Failure, Link
from repros.match.hints import hints_of
from repros.match.index import SignatureEntry, SignatureIndex, SignatureMatch
from repros.match.squash import squash
from repros.match.stack import Stack
from repros.model import Repro


class Confidence(StrEnum):
    """How certain it is that a log shows a documented failure."""

    CERTAIN = "certain"
    """The traceback contains the repro's own script; or class, message and a frame that the repro names agree, no
    other repro has this message here, and the versions in the log are affected."""
    LIKELY = "likely"
    """Class and message agree, the frames agree if the repro names any, and no other repro or common cause has this
    message here."""
    POSSIBLE = "possible"
    """The message agrees, but the log has no line with its class, only a part of it, or no frames; another repro or
    many other causes have this message too; or the versions in the log are not affected."""


@dataclass(frozen=True)
class Sighting:
    """An exception in the log that matches a repro's signature."""

    failure: Failure
    link: Link
    match: SignatureMatch
    frames: tuple[str, ...]
    """The functions named by the repro that are on its stack."""
    in_own_script: bool
    """Whether its traceback contains the repro's own script."""
    has_call: bool = False
    """Whether its stack has a call that speaks for the repro, though the repro does not name it."""
    rivals: frozenset[str] = frozenset()
    """Ids of the other repros that this exception may be."""

    @property
    def repro(self) -> Repro:
        """The repro whose signature it matches."""
        return self.match.entry.repro

    @property
    def names_frames(self) -> bool:
        """Whether the repro names functions that are on the stack of its failure."""
        return bool(self.match.entry.signature.frames)

    @property
    def frames_agree(self) -> bool:
        """Whether the stack has a function that the repro names, or the repro names none."""
        return bool(self.frames) or not self.names_frames

    @property
    def is_ruled_out(self) -> bool:
        """Whether the stack shows another failure, or the message alone is no evidence."""
        if self.frames:
            return False
        if is_consequence(self.link.raised):
            return True
        if self.has_call:
            return False
        is_seen = self.link.has_traceback and not _is_below_python(self.link)
        is_elsewhere = is_seen and (self.names_frames or bool(hints_of(self.repro).calls))
        return is_elsewhere or (bool(self.link.raised.frames) and self.match.is_common)

    @property
    def is_own_message(self) -> bool:
        """Whether nothing else prints the message."""
        own = hints_of(self.repro).own_message
        return bool(own) and squash(own) in squash(self.link.raised.message)

    @property
    def sort_key(self) -> tuple[bool, bool, bool, int]:
        """Better evidence first."""
        return (not self.in_own_script, not (self.frames or self.has_call), not self.link.has_traceback, self.link.line)


@dataclass(frozen=True)
class Candidate:
    """A repro that the log may show."""

    repro: Repro
    confidence: Confidence
    sightings: tuple[Sighting, ...]
    """Best evidence first, at least one."""
    affected: AffectedCheck
    rivals: tuple[str, ...]
    """Ids of the other repros that have the message of its best sighting."""
    words: int = 0
    """How many words in the log speak for it."""

    @property
    def sort_key(self) -> tuple[int, int, bool, int, int, bool, str]:
        """More certain ones first, then longer matched text, more words for it, affected versions, and usual causes.

        Versions that are not affected come last whatever the words.
        """
        certainty = list(Confidence).index(self.confidence)
        length = len(self.sightings[0].match.matched_text)
        state = self.affected.state
        is_unusual = not hints_of(self.repro).usual_cause
        is_free = state is AffectedState.NOT_AFFECTED
        return (certainty, -length, is_free, -self.words, state.order, is_unusual, self.repro.id)


@dataclass(frozen=True)
class RuledOut:
    """A repro whose message is in the log, but none of whose frames are."""

    entry: SignatureEntry
    link: Link


def find_candidates(
    failures: Iterable[Failure],
    index: SignatureIndex,
    versions: Mapping[str, tuple[str, ...]],
    lines: Iterable[tuple[int, str]] = (),
) -> tuple[tuple[Candidate, ...], tuple[RuledOut, ...]]:
    """Return the repros that the failures may be, the most certain first, and those ruled out by their frames.

    Args:
        failures: the failures in the log.
        index: the catalogue's signatures.
        versions: the versions that the log states.
        lines: the log, whose words decide between repros with the same message.
    """
    sightings: dict[str, list[Sighting]] = {}
    ruled_out: dict[str, RuledOut] = {}
    for failure in failures:
        stack = Stack(failure)
        for link in failure.links:
            matches = list(index.find_matches(link.raised))
            for sighting in _sightings(failure, link, matches, stack):
                sightings.setdefault(sighting.repro.id, []).append(sighting)
            for match in matches if is_consequence(link.raised) else (m for m in matches if m.entry.signature.frames):
                ruled_out.setdefault(match.entry.repro.id, RuledOut(match.entry, link))
    log_words = _find_words(sightings, lines)
    groups = (_that_words_allow(group, log_words) for group in sightings.values())
    candidates = _drop_rivals_of_own([_candidate(group, versions, log_words) for group in groups if group])
    return (
        tuple(sorted(candidates, key=lambda candidate: candidate.sort_key)),
        tuple(out for id_, out in ruled_out.items() if id_ not in sightings),
    )


def _that_words_allow(sightings: Iterable[Sighting], log_words: frozenset[str]) -> list[Sighting]:
    """Leave out common messages without a call and without a word that speaks for the repro."""
    return [
        sighting
        for sighting in sightings
        if not sighting.match.is_common
        or sighting.has_call
        or (not sighting.names_frames and _count_words(sighting.repro, log_words))
    ]


def _drop_rivals_of_own(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Leave out the rivals of each repro whose own script failed.

    The same message in a summary, where it has no frames, is that script's too.
    """
    own = {candidate.repro.id for candidate in candidates if candidate.sightings[0].in_own_script}
    return [
        candidate for candidate in candidates if candidate.repro.id in own or not own.intersection(candidate.rivals)
    ]


def _sightings(failure: Failure, link: Link, matches: Sequence[SignatureMatch], stack: Stack) -> list[Sighting]:
    """Return the sightings that the stack does not rule out; in a repro's own script, only that repro's."""
    sightings = [_sighting(failure, link, match, stack) for match in matches]
    own = [sighting for sighting in sightings if sighting.in_own_script]
    remaining = own or _that_the_stack_allows(sightings)
    ids = frozenset(sighting.repro.id for sighting in remaining)
    return [replace(sighting, rivals=ids - {sighting.repro.id}) for sighting in remaining]


def _that_the_stack_allows(sightings: Sequence[Sighting]) -> list[Sighting]:
    """Leave out what the stack rules out, and, if it speaks for one, those that it could speak for and does not."""
    allowed = [sighting for sighting in sightings if not sighting.is_ruled_out]
    if not any(sighting.frames or sighting.has_call for sighting in allowed):
        return allowed
    return [sighting for sighting in allowed if sighting.frames or sighting.has_call or not sighting.names_frames]


def _sighting(failure: Failure, link: Link, match: SignatureMatch, stack: Stack) -> Sighting:
    frames = tuple(name for name in match.entry.signature.frames if stack.has_name(name))
    has_call = any(map(stack.has_call, match.entry.hints.calls))
    return Sighting(failure, link, match, frames, stack.has_script(match.entry.repro.path.name), has_call)


def _is_below_python(link: Link) -> bool:
    """Whether the error was raised in C++ below autograd's engine, where no frame tells what was running."""
    innermost = link.raised.frames[-1] if link.raised.frames else ""
    return innermost.endswith((" backward", " _engine_run_backward")) and "torch/autograd/" in innermost.replace(
        "\\", "/"
    )


def _candidate(
    sightings: Iterable[Sighting], versions: Mapping[str, tuple[str, ...]], log_words: frozenset[str]
) -> Candidate:
    ordered = tuple(sorted(sightings, key=lambda sighting: sighting.sort_key))
    best = ordered[0]
    affected = check_affected(best.repro, best.match.entry.variants, versions)
    words = _count_words(best.repro, log_words)
    rivals = tuple(sorted(best.rivals))
    return Candidate(best.repro, _confidence(best, affected), ordered, affected, rivals, words)


def _find_words(sightings: Mapping[str, Sequence[Sighting]], lines: Iterable[tuple[int, str]]) -> frozenset[str]:
    """Return the words of the sighted repros that are in the log, whatever their case; the log is read once."""
    wanted = {word for group in sightings.values() for word in hints_of(group[0].repro).words}
    if not wanted:
        return frozenset()
    found: set[str] = set()
    for _, text in lines:
        lower = text.lower()
        found.update(word for word in wanted if word in lower)
        wanted -= found
    return frozenset(found)


def _count_words(repro: Repro, log_words: frozenset[str]) -> int:
    return len(log_words.intersection(hints_of(repro).words))


def _confidence(best: Sighting, affected: AffectedCheck) -> Confidence:
    if best.in_own_script:
        return Confidence.CERTAIN
    is_decided = best.frames_agree or best.is_own_message
    if best.rivals or not is_decided or affected.state is AffectedState.NOT_AFFECTED:
        return Confidence.POSSIBLE
    is_part = not best.link.has_class or not (best.match.is_documented or best.is_own_message)
    if is_part or hints_of(best.repro).common_message:
        return Confidence.POSSIBLE
    if best.frames and affected.state is AffectedState.AFFECTED and affected.versions:
        return Confidence.CERTAIN
    return Confidence.LIKELY
