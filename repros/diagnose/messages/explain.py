"""Explain the failures of a log by the words of their messages and the user's own code on their stacks."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath

from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.match.user_frames import UserFrame, own_frames
from repros.diagnose.messages.api_changes import change_words
from repros.diagnose.messages.derived import derive
from repros.diagnose.messages.family import Cause, MessageFamily, load_families
from repros.model import Raised

DEFAULT_SCRIPT = "train.py"
MOST_EXPLAINED = 200
"""Failures of one log; more of them are repetitions with other numbers."""
_MOST_PASTED = 2_000
"""Lines before and after the first exception that are searched for families' words, if no exception is a cause."""
_MOST_PARTS = 20
"""The last parts of a line between carriage returns that are searched; a progress bar overwrites millions in a line."""
_ROOT_CAUSE = "Root Cause (first observed failure)"
"""The line of torchrun's report after which it names the rank."""
_ROOT_RANK = re.compile(r"rank +: (\d+) \(local_rank")

Lines = Iterable[tuple[int, str]]
"""The lines of a log with their numbers; iterable any number of times."""


@dataclass(frozen=True)
class PossibleCause:
    """A cause that an error may have."""

    cause: Cause
    """With the message's own words filled in."""
    evidence: str = ""
    """The user's code, the frame or the words of the message that are evidence for it; without any, the cause is only
    possible."""

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
    """The likely ones first, then in the order in which public threads have them; those that the message's numbers do
    not show come last."""
    frame: UserFrame | None
    """The innermost frame of the user's own code."""
    is_consequence: bool
    """Whether the exception only reports that another process failed."""
    is_first: bool
    """Whether torchrun reports that this rank failed first."""
    next: tuple[str, ...]
    """Commands that work as they stand, if the program is where the log has it."""
    script: str
    """The program that the log names, else `train.py`."""


def explain(
    failures: Sequence[LogFailure], log: Lines = (), families: Sequence[MessageFamily] | None = None
) -> tuple[Explanation, ...]:
    """Explain failures: first the rank that torchrun names as the first, then the others in the order of the log.

    Failures that only report another process's failure follow, and warnings come last. In a text without another
    exception, the lines with the words of a family are explained.

    Args:
        failures: the failures of a log.
        log: its lines, for what is printed in front of an exception, such as a kernel's assertion.
        families: the message families; the project's own if not given.
    """
    families = load_families() if families is None else families
    root = _root_rank(log) if len(failures) > 1 else None
    explained = [_explain(failure, log, families, root) for failure in failures[:MOST_EXPLAINED]]
    if all(explanation.is_consequence for explanation in explained if not is_warning(explanation.link)):
        first = min((link.line for failure in failures for link in failure.links), default=0)
        explained += [
            _explain(failure, log, families, root)
            for failure in _pasted_failures(log, _left(families, explained), first - _MOST_PASTED)
        ]
    return tuple(sorted(explained, key=_order))


def explain_reported(family: MessageFamily, sentence: str, line: int) -> Explanation:
    """Explain an error that a sentence of an issue reports in words of its own.

    Args:
        family: what the sentence reports.
        sentence: the sentence.
        line: the number of its line.
    """
    link = ChainLink(Raised("", (), sentence, ()), line, has_traceback=False, has_class=False)
    failure = LogFailure((link,), ())
    words = {"script": DEFAULT_SCRIPT}
    with contextlib.suppress(KeyError):  # most derivations need the numbers of the message
        words |= derive(family.name, {}, sentence)
    facts = tuple(_fill_all(family.facts, words))
    causes = tuple(_causes(family, failure, (), words))
    commands = tuple(_fill_all(family.next, words))
    return Explanation(
        failure,
        link,
        family,
        facts,
        causes,
        None,
        is_consequence=False,
        is_first=False,
        next=commands,
        script=DEFAULT_SCRIPT,
    )


def _left(families: Sequence[MessageFamily], explained: Iterable[Explanation]) -> list[MessageFamily]:
    """Return the families without those that explain a failure already."""
    found = {explanation.family.name for explanation in explained if explanation.family}
    return [family for family in families if family.name not in found]


def _order(explanation: Explanation) -> tuple[bool, bool, bool, bool]:
    consequence = explanation.is_consequence
    return is_warning(explanation.link), consequence, consequence and not explanation.family, not explanation.is_first


def is_warning(link: ChainLink) -> bool:
    """Whether an exception's class is that of a warning."""
    return link.raised.type.endswith("Warning")


def _root_rank(log: Lines) -> str | None:
    """Return the rank that torchrun reports as the first that failed."""
    lines = iter(log)
    if not any(_ROOT_CAUSE in text for _, text in lines):
        return None
    return next((found[1] for _, text in lines if (found := _ROOT_RANK.search(text))), None)


def _pasted_failures(log: Lines, families: Sequence[MessageFamily], start: int) -> Iterator[LogFailure]:
    """Yield a failure without a class for each message of a family in lines from `start`, the first of each family."""
    left = {family.name: family for family in families}
    for number, parts in groupby(log, key=itemgetter(0)):
        if number >= max(start, 0) + 2 * _MOST_PASTED:
            return
        if number < start:
            continue
        for _, text in deque(parts, maxlen=_MOST_PARTS):
            for family in [family for family in left.values() if family.search("", text) is not None]:
                del left[family.name]
                message = text.strip().removeprefix("# ")  # an issue's title
                link = ChainLink(Raised("", (), message, ()), number, has_traceback=False, has_class=False)
                yield LogFailure((link,), ())


def _explain(failure: LogFailure, log: Lines, families: Sequence[MessageFamily], root: str | None) -> Explanation:
    from repros.engine.causes import is_consequence  # noqa: PLC0415 - its expressions take long to compile

    own = [link for link in failure.links if not is_consequence(link.raised)]
    link, family, groups = _find_family(own or failure.links, families)
    frames = own_frames(failure, link)
    script = _script_of(own_frames(failure))
    words = {"script": script, **(_read_log(family, log) if family else {}), **groups}
    if family and family.area == "names":
        words |= change_words(words, log)
    return Explanation(
        failure,
        link,
        family,
        tuple(_fill_all(family.facts, words)) if family else (),
        tuple(_causes(family, failure, frames, words)) if family else (),
        frames[0] if frames else None,
        not own,
        root is not None and any(re.search(rf"rank {root}$", label) for label in failure.writers),
        tuple(_fill_all(family.next, words)) if family else (),
        script,
    )


def _find_family(
    links: Sequence[ChainLink], families: Sequence[MessageFamily]
) -> tuple[ChainLink, MessageFamily | None, dict[str, str]]:
    """Return the outermost exception with the words of a family, else the innermost one."""
    for link in links:
        raised = link.raised
        for family in families:
            name = raised.type.rpartition(".")[2] if link.has_class else ""
            message = raised.message or name  # some classes say all: RendezvousTimeoutError
            groups = family.search(name, message)
            if groups is not None:
                return link, family, derive(family.name, groups, message)
    return links[-1], None, {}


def _read_log(family: MessageFamily, log: Lines) -> dict[str, str]:
    """Return the groups of a family's expressions in the lines of a log, of each the first."""
    if not family.log:
        return {}
    words: dict[str, str] = {}
    patterns = [re.compile(pattern) for pattern in family.log]
    for _, text in log:
        for pattern in patterns:
            if found := pattern.search(text):
                words = {**{name: value for name, value in found.groupdict().items() if value}, **words}
    if "ran" in words and words.get("none") == "0it":  # the first line of a bar that has steps later
        del words["none"]
    return words


def _script_of(frames: Sequence[UserFrame]) -> str:
    """Return the file of the outermost frame of the user's code that is a module's, by its name."""
    files = [frame.file for frame in frames if frame.function == "<module>" and frame.file.endswith(".py")]
    return PurePosixPath(files[-1].replace("\\", "/")).name if files else DEFAULT_SCRIPT


def _fill_all(texts: Sequence[str], words: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts with the named words filled in; a text with a word that the message lacks is left out."""
    for text in texts:
        try:
            yield text.format_map(words)
        except KeyError:
            continue


def _causes(
    family: MessageFamily, failure: LogFailure, frames: Sequence[UserFrame], words: Mapping[str, str]
) -> Iterator[PossibleCause]:
    texts = [frame.code for frame in frames if frame.code]
    texts += [frame for link in failure.links for frame in link.raised.frames]
    causes: list[tuple[bool, PossibleCause]] = []
    for cause in family.causes:
        if any(re.search(pattern, text) for pattern in cause.unless for text in texts):
            continue
        filled = tuple(_fill_all((cause.text, cause.fix, cause.check), words))
        if len(filled) == 3:  # noqa: PLR2004 - a cause with a word that the message lacks is left out
            text, fix, check = filled
            evidence = _evidence(cause, texts, words)
            is_unmet = bool(cause.when) and not evidence
            shown = replace(cause, text=text, fix=fix, check=check, evidence=(), when="", unless=())
            causes.append((is_unmet, PossibleCause(shown, evidence)))
    for _, possible in sorted(causes, key=lambda item: (not item[1].is_likely, item[0])):
        yield possible


def _evidence(cause: Cause, texts: Sequence[str], words: Mapping[str, str]) -> str:
    """Return the evidence for a cause: words of the message or the log, a line of code, a frame; empty if nothing."""
    found = (text for pattern in cause.evidence for text in texts if re.search(pattern, text))
    return words.get(cause.when, "") or next(found, "")
