"""What an exception says about one repro: the evidence for it, and the line that speaks against it.

A repro keeps its sighting unless a line contradicts it: evidence that is absent makes an answer less certain and no
more. A contradiction quotes its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from repros.diagnose.match.failures import Failure, Link
from repros.diagnose.match.hints import Hints, hints_of
from repros.diagnose.match.index import SignatureEntry, SignatureMatch
from repros.diagnose.match.squash import squash
from repros.diagnose.match.stack import Stack
from repros.engine.consequences import is_consequence
from repros.model import Repro


class Against(StrEnum):
    """What the line that contradicts a repro shows."""

    CONSEQUENCE = "consequence"
    """Another process failed first."""
    OTHER_TEXT = "other text"
    """A part of the message that another cause prints."""
    OTHER_CALL = "other call"
    """The call that raises; its whole stack has none of the repro's functions."""
    OTHER_REPRO = "other repro"
    """A function on the stack that speaks for another repro."""
    OTHER_SCRIPT = "other script"
    """Another repro's own script."""


@dataclass(frozen=True)
class Contradiction:
    """A line of the log that contradicts a repro."""

    against: Against
    quote: str
    """A part of the message, or `file:line function` for the line of a frame."""
    repro_id: str = ""
    """The repro that the line speaks for, if there is one."""


@dataclass(frozen=True)
class RuledOut:
    """A repro whose message is in the log, and the line that contradicts it."""

    entry: SignatureEntry
    link: Link
    contradiction: Contradiction


@dataclass(frozen=True)
class Sighting:
    """An exception in the log that matches a repro's signature."""

    failure: Failure
    link: Link
    match: SignatureMatch
    frames: tuple[str, ...]
    """The functions named by the repro that are on its stack."""
    evidence: str = ""
    """The frame on its stack that speaks for the repro: of a function that the repro names, or else of another call."""
    own_frame: str = ""
    """The frame of the repro's own script, if its traceback has one."""
    rivals: frozenset[str] = frozenset()
    """Ids of the other repros that this exception may be."""

    @property
    def repro(self) -> Repro:
        """The repro whose signature it matches."""
        return self.match.entry.repro

    @property
    def hints(self) -> Hints:
        """What else tells the repro in a pasted log."""
        return hints_of(self.repro)

    @property
    def in_own_script(self) -> bool:
        """Whether its traceback contains the repro's own script."""
        return bool(self.own_frame)

    @property
    def names_frames(self) -> bool:
        """Whether the repro names functions that are on the stack of its failure."""
        return bool(self.match.entry.signature.frames) and not self.match.is_symptom

    @property
    def frames_agree(self) -> bool:
        """Whether the stack has a function that the repro names, or the repro names none."""
        return bool(self.frames) or not self.names_frames

    @property
    def is_own_message(self) -> bool:
        """Whether nothing else prints the message."""
        own = self.hints.own_message
        return bool(own) and squash(own) in squash(self.link.raised.message)

    @property
    def contradiction(self) -> Contradiction | None:
        """What its own exception says against it."""
        if self.match.other_text:
            return Contradiction(Against.OTHER_TEXT, self.match.other_text)
        if self.frames:
            return None
        if is_consequence(self.link.raised):
            return Contradiction(Against.CONSEQUENCE, self.link.raised.message.partition("\n")[0])
        if self.evidence or self.is_own_message or self.match.is_symptom:
            return None
        is_whole = self.link.has_traceback and not _is_below_python(self.link)
        is_elsewhere = is_whole and (self.names_frames or bool(self.hints.calls))
        if is_elsewhere or (self.link.raised.frames and self.match.is_common):
            return Contradiction(Against.OTHER_CALL, _raising_call(self.link.raised.frames))
        return None

    @property
    def sort_key(self) -> tuple[bool, bool, bool, bool, int]:
        """Better evidence first."""
        is_symptom = self.match.is_symptom
        return (not self.in_own_script, is_symptom, not self.evidence, not self.link.has_traceback, self.link.line)


def judge_sightings(
    failure: Failure, link: Link, matches: Sequence[SignatureMatch], stack: Stack
) -> tuple[list[Sighting], list[RuledOut]]:
    """Return the sightings of one exception that no line contradicts, and the repros that one does."""
    sightings = [_sighting(failure, link, match, stack) for match in matches]
    kept, ruled_out = _split(sightings)
    ids = frozenset(sighting.repro.id for sighting in kept if not sighting.match.is_symptom)
    return [replace(sighting, rivals=ids - {sighting.repro.id}) for sighting in kept], ruled_out


def _split(sightings: Sequence[Sighting]) -> tuple[list[Sighting], list[RuledOut]]:
    own = next((sighting for sighting in sightings if sighting.in_own_script), None)
    kept, ruled_out = [], []
    for sighting in sightings:
        contradiction = _contradiction_of_script(sighting, own) if own else sighting.contradiction
        if contradiction:
            ruled_out.append(RuledOut(sighting.match.entry, sighting.link, contradiction))
        else:
            kept.append(sighting)
    speaking = [sighting for sighting in kept if sighting.evidence and not sighting.match.is_symptom]
    if own or not speaking:
        return kept, ruled_out
    remaining = []
    for sighting in kept:
        against = next((other for other in speaking if _is_another(sighting, other, speaking[0])), None)
        if against:
            quoted = Contradiction(Against.OTHER_REPRO, against.evidence, against.repro.id)
            ruled_out.append(RuledOut(sighting.match.entry, sighting.link, quoted))
        else:
            remaining.append(sighting)
    return remaining, ruled_out


def _is_another(sighting: Sighting, other: Sighting, first: Sighting) -> bool:
    """Whether the frame that speaks for another repro speaks against this sighting."""
    is_silent = sighting.names_frames and not sighting.evidence
    return other.repro.id in sighting.hints.special_cases or (is_silent and other is first)


def _contradiction_of_script(sighting: Sighting, own: Sighting) -> Contradiction | None:
    """Return what another repro's own script says against a repro."""
    return None if sighting.in_own_script else Contradiction(Against.OTHER_SCRIPT, own.own_frame, own.repro.id)


def rule_out_by_scripts(
    sightings: Iterable[Sighting], own: Iterable[Sighting]
) -> tuple[list[Sighting], list[RuledOut]]:
    """Leave out what only repeats the message of a repro's own script, as a summary does.

    Args:
        sightings: those of one repro.
        own: the sightings of all repros in their own scripts.
    """
    scripts = {_first_line(sighting.link): sighting for sighting in own}
    kept, ruled_out = [], []
    for sighting in sightings:
        script = scripts.get(_first_line(sighting.link))
        if script is None or sighting.in_own_script or sighting.evidence or script.repro is sighting.repro:
            kept.append(sighting)
        else:
            quoted = Contradiction(Against.OTHER_SCRIPT, script.own_frame, script.repro.id)
            ruled_out.append(RuledOut(sighting.match.entry, sighting.link, quoted))
    return kept, ruled_out


def _first_line(link: Link) -> str:
    return squash(link.raised.message.partition("\n")[0])


def _sighting(failure: Failure, link: Link, match: SignatureMatch, stack: Stack) -> Sighting:
    named = {name: frame for name in match.entry.signature.frames if (frame := stack.find_name(name))}
    speaking = (*named.values(), *map(stack.find_call, match.entry.hints.calls))
    evidence = next(filter(None, speaking), "")
    return Sighting(failure, link, match, tuple(named), evidence, stack.find_script(match.entry.repro.path.name))


def _raising_call(frames: Sequence[str]) -> str:
    """Return the innermost frame outside of torch: the call whose cause the message tells."""
    outside = (frame for frame in reversed(frames) if "/torch/" not in frame.replace("\\", "/"))
    return next(outside, frames[-1])


def _is_below_python(link: Link) -> bool:
    """Whether the error was raised in C++ below autograd's engine, where no frame tells what was running."""
    innermost = link.raised.frames[-1] if link.raised.frames else ""
    return innermost.endswith((" backward", " _engine_run_backward")) and "torch/autograd/" in innermost.replace(
        "\\", "/"
    )
