"""Occurrences of a repro in a log: the exceptions that match its signature, and the lines that contradict it.

Only a contradicting line rules a repro out; absent evidence makes it less certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.match.hints import Hints
from repros.diagnose.match.index import SignatureEntry, SignatureMatch, squash
from repros.model import Repro

_WORD = re.compile(r"[^\W\d]\w+")


class ContradictionKind(StrEnum):
    """What a contradicting line shows."""

    CONSEQUENCE = "consequence"
    """Another process failed first."""
    OTHER_TEXT = "other text"
    """A part of the message that another cause prints."""
    OTHER_CALL = "other call"
    """The call that raises, on a complete stack without the repro's functions."""
    OTHER_REPRO = "other repro"
    """A function on the stack that is evidence for another repro."""
    OTHER_SCRIPT = "other script"
    """Another repro's own script."""


@dataclass(frozen=True)
class ContradictingLine:
    """A line of the log that contradicts a repro."""

    kind: ContradictionKind
    quote: str
    """A part of the message, or `file:line function` for a frame."""
    repro_id: str = ""
    """The other repro that the line is evidence for, if any."""


@dataclass(frozen=True)
class RuledOut:
    """A repro whose message is in the log, and the line that contradicts it."""

    entry: SignatureEntry
    link: ChainLink
    contradiction: ContradictingLine


@dataclass(frozen=True)
class Occurrence:
    """An exception in the log that matches a repro's signature."""

    failure: LogFailure
    link: ChainLink
    match: SignatureMatch
    frames: tuple[str, ...]
    """The functions on its stack that the repro's signature names."""
    evidence: str = ""
    """The frame on its stack that is evidence for the repro: a function of its signature or a call in its hints."""
    own_frame: str = ""
    """The frame in the repro's own script, if its traceback has one."""
    alternatives: frozenset[str] = frozenset()
    """Ids of the other repros that this exception may show."""

    @property
    def repro(self) -> Repro:
        """The repro whose signature it matches."""
        return self.match.entry.repro

    @property
    def hints(self) -> Hints:
        """The repro's hints."""
        return self.match.entry.hints

    @property
    def in_own_script(self) -> bool:
        """Whether its traceback contains the repro's own script."""
        return bool(self.own_frame)

    @property
    def names_frames(self) -> bool:
        """Whether the repro's signature names functions on the stack."""
        return bool(self.match.entry.signature.frames) and not self.match.is_symptom

    @property
    def frames_agree(self) -> bool:
        """Whether the stack has a function of the repro's signature, or the signature names none."""
        return bool(self.frames) or not self.names_frames

    @property
    def agrees_by_chance(self) -> bool:
        """Whether only the class agrees, or a text without a word of its own, as "expected 1, got 2"."""
        raised, words = self.link.raised, _WORD.findall(self.match.matched_text)
        is_class = not raised.message or self.match.matched_text in {raised.type, raised.name.rpartition(".")[2]}
        return is_class or {*words} <= {"expected", "got", "None", "True", "False"}

    @property
    def is_own_message(self) -> bool:
        """Whether no other cause prints the message."""
        own = self.hints.own_message
        return bool(own) and squash(own) in squash(self.link.raised.message)

    @property
    def contradiction(self) -> ContradictingLine | None:
        """The part of its own exception that contradicts the repro."""
        other = self.match.other_text or self._other_text_of_causes
        if other:
            return ContradictingLine(ContradictionKind.OTHER_TEXT, other)
        if self.frames:
            return None
        from repros.engine.causes import is_consequence  # noqa: PLC0415 - its expressions take long to compile

        if is_consequence(self.link.raised):
            return ContradictingLine(ContradictionKind.CONSEQUENCE, self.link.raised.message.partition("\n")[0])
        if self.evidence or self.is_own_message or self.match.is_symptom:
            return None
        is_complete = self.link.has_traceback and not _is_below_python(self.link)
        is_elsewhere = is_complete and (self.names_frames or bool(self.hints.calls))
        if is_elsewhere or (self.link.raised.frames and self.match.is_common):
            return ContradictingLine(ContradictionKind.OTHER_CALL, _raising_call(self.link.raised.frames))
        return None

    @property
    def _other_text_of_causes(self) -> str:
        """The part of an exception that caused its own which shows another cause than the repro's."""
        if not self.hints.common_message:
            return ""
        causes = self.failure.links[self.failure.links.index(self.link) + 1 :]
        found = (self.match.entry.find_other_text(squash(cause.raised.message)) for cause in causes)
        return next(filter(None, found), "")

    @property
    def sort_key(self) -> tuple[bool, bool, bool, bool, int]:
        """Better evidence first."""
        is_symptom = self.match.is_symptom
        return (not self.in_own_script, is_symptom, not self.evidence, not self.link.has_traceback, self.link.line)


def judge_occurrences(
    failure: LogFailure, link: ChainLink, matches: Sequence[SignatureMatch]
) -> tuple[list[Occurrence], list[RuledOut]]:
    """Return the occurrences of one exception that no line contradicts, and the repros that a line contradicts."""
    occurrences = [_occurrence(failure, link, match) for match in matches]
    own = next((occurrence for occurrence in occurrences if occurrence.in_own_script), None)
    if own is not None:
        kept, ruled_out = _split(occurrences, lambda other: None if other.in_own_script else _other_script(own))
    else:
        kept, ruled_out = _split(occurrences, lambda occurrence: occurrence.contradiction)
        confirmed = [occurrence for occurrence in kept if occurrence.evidence and not occurrence.match.is_symptom]
        kept, contradicted = _split(kept, lambda occurrence: _contradiction_by_others(occurrence, confirmed))
        ruled_out += contradicted
    ids = frozenset(occurrence.repro.id for occurrence in kept if not occurrence.match.is_symptom)
    return [replace(occurrence, alternatives=ids - {occurrence.repro.id}) for occurrence in kept], ruled_out


def _split(
    occurrences: Iterable[Occurrence], contradiction: Callable[[Occurrence], ContradictingLine | None]
) -> tuple[list[Occurrence], list[RuledOut]]:
    """Return the occurrences that no line contradicts, and those that one does."""
    kept, ruled_out = [], []
    for occurrence in occurrences:
        if line := contradiction(occurrence):
            ruled_out.append(RuledOut(occurrence.match.entry, occurrence.link, line))
        else:
            kept.append(occurrence)
    return kept, ruled_out


def _contradiction_by_others(occurrence: Occurrence, confirmed: Sequence[Occurrence]) -> ContradictingLine | None:
    """Return the frame that is evidence for another repro and contradicts this one."""
    lacks_frames = occurrence.names_frames and not occurrence.evidence
    for other in confirmed:
        if other.repro.id in occurrence.hints.special_cases or (lacks_frames and other is confirmed[0]):
            return ContradictingLine(ContradictionKind.OTHER_REPRO, other.evidence, other.repro.id)
    return None


def _other_script(script: Occurrence) -> ContradictingLine:
    """Return the frame in a repro's own script, which contradicts other repros."""
    return ContradictingLine(ContradictionKind.OTHER_SCRIPT, script.own_frame, script.repro.id)


def rule_out_by_scripts(
    occurrences: Iterable[Occurrence], own: Iterable[Occurrence]
) -> tuple[list[Occurrence], list[RuledOut]]:
    """Rule out occurrences that only repeat the message of another repro's own script, as a summary does.

    Args:
        occurrences: those of one repro.
        own: the occurrences of all repros in their own scripts.
    """
    scripts = {_first_line(occurrence.link): occurrence for occurrence in own}

    def contradiction(occurrence: Occurrence) -> ContradictingLine | None:
        script = scripts.get(_first_line(occurrence.link))
        if script is None or occurrence.in_own_script or occurrence.evidence or script.repro is occurrence.repro:
            return None
        return _other_script(script)

    return _split(occurrences, contradiction)


def _first_line(link: ChainLink) -> str:
    return squash(link.raised.message.partition("\n")[0])


def _occurrence(failure: LogFailure, link: ChainLink, match: SignatureMatch) -> Occurrence:
    stack = failure.call_stack
    named = {name: frame for name in match.entry.signature.frames if (frame := stack.find_name(name))}
    evidence = next(filter(None, (*named.values(), *map(stack.find_call, match.entry.hints.calls))), "")
    return Occurrence(failure, link, match, tuple(named), evidence, stack.find_script(match.entry.repro.path.name))


def _raising_call(frames: Sequence[str]) -> str:
    """Return the innermost frame outside of torch: the call that the message is about."""
    outside = (frame for frame in reversed(frames) if "/torch/" not in frame.replace("\\", "/"))
    return next(outside, frames[-1])


def _is_below_python(link: ChainLink) -> bool:
    """Whether the error was raised in C++ below autograd's engine, where no frame names the running operation."""
    innermost = link.raised.frames[-1] if link.raised.frames else ""
    is_backward = innermost.endswith((" backward", " _engine_run_backward"))
    return is_backward and "torch/autograd/" in innermost.replace("\\", "/")
