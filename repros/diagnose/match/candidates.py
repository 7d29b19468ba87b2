"""Find the repros that the failures in a log may show, and the confidence of each.

Compared in this order: the class and the message of each exception with the signatures, its stack with the evidence for
and against each repro (`occurrences`), the versions in the log with the affected releases. Documented messages outside
of exceptions (`pasted`) count for the repros about which no exception has decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.diagnose.match.affected import AffectedCheck, AffectedState, check_affected
from repros.diagnose.match.failures import LogFailure
from repros.diagnose.match.index import SignatureIndex
from repros.diagnose.match.occurrences import Occurrence, RuledOut, judge_occurrences, rule_out_by_scripts
from repros.diagnose.match.pasted import find_messages
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
    occurrences: tuple[Occurrence, ...]
    """Best evidence first, at least one."""
    affected: AffectedCheck
    alternatives: tuple[str, ...]
    """Ids of the other repros that have the message of its best occurrence."""
    words: int = 0
    """The number of its words that are in the log."""
    lacks_packages: bool = False
    """Whether torch raises the message too, and the log names none of the repro's packages."""
    without_words: tuple[Repro, ...] = ()
    """The other repros with the symptom of its best occurrence, of which the log has neither a call nor a word."""

    @property
    def sort_key(self) -> tuple[int, int, bool, int, int, bool, str]:
        """More certain first, then longer matched text, more words, affected versions, and usual causes.

        Versions that are not affected come last whatever the words.
        """
        certainty = list(Confidence).index(self.confidence)
        length = len(self.occurrences[0].match.matched_text)
        state = self.affected.state
        is_unusual = not self.occurrences[0].hints.usual_cause
        is_unaffected = state is AffectedState.NOT_AFFECTED
        return (certainty, -length, is_unaffected, -self.words, state.order, is_unusual, self.repro.id)


def find_candidates(
    failures: Iterable[LogFailure],
    index: SignatureIndex,
    versions: Mapping[str, tuple[str, ...]],
    lines: Iterable[tuple[int, str]] = (),
) -> tuple[tuple[Candidate, ...], tuple[RuledOut, ...]]:
    """Return the repros that a log may show, the most certain first, and those that a line contradicts.

    Args:
        failures: the failures in the log.
        index: the catalogue's signatures.
        versions: the versions that the log states.
        lines: the log: its words decide between repros with the same message, and it may have documented messages
            outside of exceptions.
    """
    exceptions = _judge(failures, index, lines)
    messages = _judge(find_messages(lines, index, exceptions.decided), index, lines).without(exceptions.decided)
    groups = [*exceptions.groups.values(), *messages.groups.values()]
    log_words = exceptions.log_words | messages.log_words
    candidates = [_candidate(group, versions, log_words) for group in groups]
    candidates = [_with_unsupported(one, [*exceptions.unsupported, *messages.unsupported]) for one in candidates]
    return sort_candidates(candidates), (*exceptions.ruled_out, *messages.ruled_out)


@dataclass(frozen=True)
class _Judgement:
    """The occurrences of repros in failures."""

    groups: Mapping[str, Sequence[Occurrence]]
    """Those that count, by the id of their repro."""
    unsupported: Sequence[Occurrence]
    """Common messages and symptoms without a call or a word that supports them."""
    ruled_out: Sequence[RuledOut]
    """One entry for each repro without an occurrence that counts."""
    log_words: frozenset[str]
    """The words of these repros that are in the log."""

    @property
    def decided(self) -> frozenset[str]:
        """The ids of the repros that have an occurrence, or are ruled out."""
        return frozenset((*self.groups, *(out.entry.repro.id for out in self.ruled_out)))

    def without(self, ids: Collection[str]) -> _Judgement:
        """Return it without the occurrences of some repros."""
        groups = {id_: group for id_, group in self.groups.items() if id_ not in ids}
        ruled_out = [out for out in self.ruled_out if out.entry.repro.id not in ids]
        return replace(self, groups=groups, ruled_out=ruled_out)


def _judge(failures: Iterable[LogFailure], index: SignatureIndex, lines: Iterable[tuple[int, str]]) -> _Judgement:
    by_repro: dict[str, list[Occurrence]] = {}
    ruled_out: list[RuledOut] = []
    for failure in failures:
        for link in failure.links:
            occurrences, contradicted = judge_occurrences(failure, link, tuple(index.find_matches(link.raised)))
            ruled_out += contradicted
            for occurrence in occurrences:
                by_repro.setdefault(occurrence.repro.id, []).append(occurrence)
    own = [occurrence for group in by_repro.values() for occurrence in group if occurrence.in_own_script]
    log_words = _find_words(by_repro, lines)
    groups, unsupported = {}, []
    for id_, group in by_repro.items():
        supported = [occurrence for occurrence in group if _is_supported(occurrence, log_words)]
        unsupported += [] if supported else group
        kept, contradicted = rule_out_by_scripts(supported, own)
        ruled_out += contradicted
        if kept:
            groups[id_] = kept
    # Each repro's first contradiction, in the order of the last ones.
    first = {out.entry.repro.id: out for out in reversed(ruled_out) if out.entry.repro.id not in groups}
    return _Judgement(groups, unsupported, tuple(reversed(first.values())), log_words)


def sort_candidates(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates, the most certain first."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.sort_key))


def _is_supported(occurrence: Occurrence, log_words: frozenset[str]) -> bool:
    """Whether an occurrence counts.

    A common message or a symptom needs a call or a word of the repro, and what agrees by chance a call or the script.
    """
    match = occurrence.match
    if occurrence.agrees_by_chance:
        return bool(occurrence.evidence) or occurrence.in_own_script
    is_of_others = match.is_symptom or occurrence.hints.torch_message
    needs_support = match.is_common or (is_of_others and occurrence.hints.needs_more)
    has_words = not occurrence.names_frames and _count_words(occurrence, log_words) > 0
    return not needs_support or bool(occurrence.evidence) or has_words


def _candidate(
    occurrences: Iterable[Occurrence], versions: Mapping[str, tuple[str, ...]], log_words: frozenset[str]
) -> Candidate:
    ordered = tuple(sorted(occurrences, key=lambda occurrence: occurrence.sort_key))
    best = ordered[0]
    affected = check_affected(best.repro, best.match.entry.variants, versions)
    words = _count_words(best, log_words)
    alternatives = tuple(sorted(best.alternatives))
    stack = best.failure.call_stack
    shown = [name for name in best.repro.packages if name in log_words or stack.find_call(name)]
    lacks_packages = best.hints.torch_message and not shown
    confidence = _confidence(best, affected, lacks_packages=lacks_packages)
    return Candidate(best.repro, confidence, ordered, affected, alternatives, words, lacks_packages)


def _with_unsupported(candidate: Candidate, unsupported: Iterable[Occurrence]) -> Candidate:
    """Add the repros with the candidate's symptom of which the log has neither a call nor a word."""
    best = candidate.occurrences[0]
    if not best.match.is_symptom:
        return candidate
    same = (other.repro for other in unsupported if other.match.is_symptom and other.link == best.link)
    return replace(candidate, without_words=tuple(dict.fromkeys(same)))


def _find_words(occurrences: Mapping[str, Sequence[Occurrence]], lines: Iterable[tuple[int, str]]) -> frozenset[str]:
    """Return the words of these repros that are in the log, whatever their case."""
    wanted = {word for group in occurrences.values() for word in _words_of(group[0])}
    present: set[str] = set()
    for _, text in lines if wanted else ():
        lower = text.lower()
        present.update(word for word in wanted if word in lower)
        wanted -= present
    return frozenset(present)


def _words_of(occurrence: Occurrence) -> tuple[str, ...]:
    packages = occurrence.repro.packages if occurrence.hints.torch_message else ()
    return (*occurrence.hints.words, *packages)


def _count_words(occurrence: Occurrence, log_words: frozenset[str]) -> int:
    return len(log_words.intersection(occurrence.hints.words))


def _confidence(best: Occurrence, affected: AffectedCheck, *, lacks_packages: bool) -> Confidence:
    if best.in_own_script:
        return Confidence.CERTAIN
    if lacks_packages:
        return Confidence.POSSIBLE
    is_decided = best.frames_agree or best.is_own_message
    if best.alternatives or not is_decided or affected.state is AffectedState.NOT_AFFECTED:
        return Confidence.POSSIBLE
    if best.match.is_symptom:
        return Confidence.POSSIBLE
    is_part = not best.link.has_class or not (best.match.is_documented or best.is_own_message)
    if is_part or best.hints.common_message:
        return Confidence.POSSIBLE
    if best.frames and affected.state is AffectedState.AFFECTED and affected.versions:
        return Confidence.CERTAIN
    return Confidence.LIKELY
