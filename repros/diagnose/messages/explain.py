"""Explain the failures of a log by the words of their messages and the user's own code on their stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.messages.derived import derive
from repros.diagnose.messages.family import Cause, MessageFamily, load_families
from repros.diagnose.messages.frames import UserFrame, own_frames

DEFAULT_SCRIPT = "train.py"


@dataclass(frozen=True)
class PossibleCause:
    """A cause that an error may have."""

    cause: Cause
    """With the message's own words filled in."""
    evidence: str = ""
    """The part of the user's code, the frame or the words of the message that speak for it; without one, the cause is
    only possible."""

    @property
    def is_likely(self) -> bool:
        """Whether the log has evidence for this cause."""
        return bool(self.evidence)


@dataclass(frozen=True)
class Explanation:
    """What a log says about one failure."""

    failure: LogFailure
    link: ChainLink
    """The exception that is explained."""
    family: MessageFamily | None
    """None if the words of the message are those of no family."""
    facts: tuple[str, ...]
    """What the message says, in sentences without their full stop."""
    causes: tuple[PossibleCause, ...]
    """The likely ones first, then in the order in which public threads have them."""
    frame: UserFrame | None
    """The innermost frame of the user's own code."""
    is_consequence: bool
    """Whether the exception only reports that another process failed."""
    next: tuple[str, ...]
    """Commands that work as they stand, if the program is where the log has it."""
    script: str
    """The program that the log names, else `train.py`."""


def explain(failures: Sequence[LogFailure], families: Sequence[MessageFamily] | None = None) -> tuple[Explanation, ...]:
    """Explain failures, in the order of the log; those that only report another process's failure come last.

    Args:
        failures: the failures of a log.
        families: the message families; the project's own if not given.
    """
    from repros.engine.causes import is_consequence  # noqa: PLC0415 - its expressions take long to compile

    families = load_families() if families is None else families
    explained = [
        _explain(failure, families, is_consequence=all(is_consequence(link.raised) for link in failure.links))
        for failure in failures
    ]
    return tuple(sorted(explained, key=lambda explanation: explanation.is_consequence))


def _explain(failure: LogFailure, families: Sequence[MessageFamily], *, is_consequence: bool) -> Explanation:
    link, family, groups = _find_family(failure, families)
    frames = own_frames(failure)
    script = _script_of(frames)
    words = {**groups, "script": script}
    return Explanation(
        failure,
        link,
        family,
        tuple(_fill_all(family.facts, words)) if family else (),
        tuple(_causes(family, failure, frames, words)) if family else (),
        frames[0] if frames else None,
        is_consequence,
        tuple(_fill_all(family.next, words)) if family else (),
        script,
    )


def _find_family(
    failure: LogFailure, families: Sequence[MessageFamily]
) -> tuple[ChainLink, MessageFamily | None, dict[str, str]]:
    """Return the outermost exception with the words of a family, else the innermost one."""
    from repros.engine.causes import is_consequence  # noqa: PLC0415 - as above

    own = [link for link in failure.links if not is_consequence(link.raised)] or list(failure.links)
    for link in own:
        raised = link.raised
        for family in families:
            groups = family.search(raised.type.rpartition(".")[2] if link.has_class else "", raised.message)
            if groups is not None:
                return link, family, derive(family.name, groups, raised.message)
    return own[-1], None, {}


def _script_of(frames: Sequence[UserFrame]) -> str:
    """Return the file of the outermost frame of the user's code that is a module's, by its name."""
    files = [frame.file for frame in frames if frame.function == "<module>" and frame.file.endswith(".py")]
    return PurePosixPath(files[-1].replace("\\", "/")).name if files else DEFAULT_SCRIPT


def _fill_all(texts: Sequence[str], words: dict[str, str]) -> Iterator[str]:
    """Yield the texts with the named words filled in; a text with a word that the message lacks is left out."""
    for text in texts:
        try:
            yield text.format_map(words)
        except KeyError:
            continue


def _causes(
    family: MessageFamily, failure: LogFailure, frames: Sequence[UserFrame], words: dict[str, str]
) -> Iterator[PossibleCause]:
    texts = [frame.code for frame in frames if frame.code]
    texts += [frame for link in failure.links for frame in link.raised.frames]
    filled = [(cause, [*_fill_all((cause.text, cause.fix, cause.check), words)]) for cause in family.causes]
    causes = [
        PossibleCause(Cause(text, fix, check, threads=cause.threads), _evidence(cause, texts, words))
        for cause, (text, fix, check) in ((cause, parts) for cause, parts in filled if len(parts) == 3)  # noqa: PLR2004
    ]
    yield from sorted(causes, key=lambda cause: not cause.is_likely)


def _evidence(cause: Cause, texts: Sequence[str], words: dict[str, str]) -> str:
    """Return what speaks for a cause: a line of code, a frame, or words of the message; empty if nothing does."""
    found = (text for pattern in cause.evidence for text in texts if re.search(pattern, text))
    return words.get(cause.when, "") or next(found, "")
