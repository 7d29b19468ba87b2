"""Decide which repros the failures in a log may be, how certain that is, and why.

First each exception's class and message are compared with the signatures. Then its stack: see `sightings`. Then the
versions that the log states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.diagnose.match.affected import AffectedCheck, AffectedState, check_affected
from repros.diagnose.match.failures import Failure
from repros.diagnose.match.hints import hints_of
from repros.diagnose.match.index import SignatureIndex
from repros.diagnose.match.sightings import RuledOut, Sighting, judge_sightings, rule_out_by_scripts
from repros.diagnose.match.stack import Stack
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
    without_words: tuple[Repro, ...] = ()
    """The other repros with the symptom of its best sighting, of whose calls and words the log has none."""

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


def find_candidates(
    failures: Iterable[Failure],
    index: SignatureIndex,
    versions: Mapping[str, tuple[str, ...]],
    lines: Iterable[tuple[int, str]] = (),
) -> tuple[tuple[Candidate, ...], tuple[RuledOut, ...]]:
    """Return the repros that the failures may be, the most certain first, and those that a line contradicts.

    Args:
        failures: the failures in the log.
        index: the catalogue's signatures.
        versions: the versions that the log states.
        lines: the log, whose words decide between repros with the same message.
    """
    sightings: dict[str, list[Sighting]] = {}
    ruled_out: list[RuledOut] = []
    for failure in failures:
        stack = Stack(failure)
        for link in failure.links:
            kept, out = judge_sightings(failure, link, tuple(index.find_matches(link.raised)), stack)
            ruled_out += out
            for sighting in kept:
                sightings.setdefault(sighting.repro.id, []).append(sighting)
    own = [sighting for group in sightings.values() for sighting in group if sighting.in_own_script]
    log_words = _find_words(sightings, lines)
    candidates, unheard = [], []
    for group in sightings.values():
        allowed = _that_words_allow(group, log_words)
        unheard += [] if allowed else group
        kept, out = rule_out_by_scripts(allowed, own)
        ruled_out += out
        if kept:
            candidates.append(_candidate(kept, versions, log_words))
    candidates = [_with_unheard(candidate, unheard) for candidate in candidates]
    found = {candidate.repro.id for candidate in candidates}
    by_id = {out.entry.repro.id: out for out in reversed(ruled_out) if out.entry.repro.id not in found}
    return sort_candidates(candidates), tuple(reversed(by_id.values()))


def sort_candidates(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates, the most certain first."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.sort_key))


def _that_words_allow(sightings: Iterable[Sighting], log_words: frozenset[str]) -> list[Sighting]:
    """Leave out common messages and symptoms without a call and without a word that speaks for the repro."""
    return [
        sighting
        for sighting in sightings
        if not (sighting.match.is_common or (sighting.match.is_symptom and sighting.hints.needs_more))
        or sighting.evidence
        or (not sighting.names_frames and _count_words(sighting.repro, log_words))
    ]


def _candidate(
    sightings: Iterable[Sighting], versions: Mapping[str, tuple[str, ...]], log_words: frozenset[str]
) -> Candidate:
    ordered = tuple(sorted(sightings, key=lambda sighting: sighting.sort_key))
    best = ordered[0]
    affected = check_affected(best.repro, best.match.entry.variants, versions)
    words = _count_words(best.repro, log_words)
    rivals = tuple(sorted(best.rivals))
    return Candidate(best.repro, _confidence(best, affected), ordered, affected, rivals, words)


def _with_unheard(candidate: Candidate, unheard: Iterable[Sighting]) -> Candidate:
    """Add the repros whose symptom is the candidate's own, and for which no call and no word speaks."""
    best = candidate.sightings[0]
    if not best.match.is_symptom:
        return candidate
    same = (other.repro for other in unheard if other.match.is_symptom and other.link == best.link)
    return replace(candidate, without_words=tuple(dict.fromkeys(same)))


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
    if best.match.is_symptom:
        return Confidence.POSSIBLE
    is_part = not best.link.has_class or not (best.match.is_documented or best.is_own_message)
    if is_part or hints_of(best.repro).common_message:
        return Confidence.POSSIBLE
    if best.frames and affected.state is AffectedState.AFFECTED and affected.versions:
        return Confidence.CERTAIN
    return Confidence.LIKELY
