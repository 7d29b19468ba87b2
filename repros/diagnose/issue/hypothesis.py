"""What a reporter takes for the cause: the sentence, and what would prove it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from packaging.version import InvalidVersion, Version

from repros.diagnose.issue.issue import Issue
from repros.diagnose.messages.release_lists import is_listed

_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_EXPLICIT = re.compile(
    r"\b(?:i|we) (?:think|believe|suspect|guess|found|find|noticed|traced|debugged|figured|suppose)\b"
    r"|\b(?:root )?cause(?: of (?:it|this|the \w+))? (?:is|was|seems|may be|might be)\b|\b(?:caused|explained) by\b"
    r"|\bthe (?:problem|issue|bug|reason|culprit) (?:is|was|seems|lies|comes)\b|\bit turns out that\b"
    r"|\bseems to (?:come|arise|originate|result|be caused)\b|\bmy (?:guess|suspicion|analysis)\b|原因|怀疑|定位到",
    re.IGNORECASE,
)
"""Words of a sentence that says what the cause may be."""
_UNKNOWN = re.compile(
    r"(?:(?:\bnot|n't) (?:\w+ )?(?:know|sure|clear|understand)|\bno (?:idea|clue)|\bunknown|\bunclear)\b"
    r"(?![^.\n]{0,40}\bbut\b)|不知道|未知|不清楚",
    re.IGNORECASE,
)
"""Words of a sentence that names no cause."""
_MECHANISM = re.compile(
    r"\breturns? early\b|\bearly return\b|\b(?:is|are|was|were) (?:never|not|no longer) (?:called|used|passed|reduced"
    r"|restored|copied|forwarded|synchroni[sz]ed|gathered|updated|initiali[sz]ed|reset|cast|registered|handed on)\b"
    r"|\bsilently (?:disables|drops|ignores|skips|switches|turns|uses|falls back|casts|converts)\b"
    r"|\b(?:turns|converts|casts|overwrites|replaces) \w+(?: \w+){0,4} (?:in)?to\b|\bbefore it is \w+ed\b"
    r"|\bdoes(?:n't| not) (?:take|pass|forward|accept|reset|restore|reduce|copy|convert)\b",
    re.IGNORECASE,
)
"""Words of a sentence that says what a program does wrongly."""
_CODE = re.compile(
    r"`[^`\n]{3,80}`|(?<![\w/])[\w/]{1,200}\.py\b|\b[a-z]\w*_\w+\b|\b[a-z]+[A-Z]\w+"
    r"|\b(?:[A-Z][a-z]+){2,}\b|\b[a-z_]+(?:\.\w+){1,4}\b"
)
"""A name of code."""
_PLACE = re.compile(
    r"(?P<file>(?<![\w./-])[\w./-]{1,200}\.py)(?!\w)(?:\W{1,3}(?:at )?(?:lines?|L) ?|:|#L)?(?P<line>\d{1,5})?"
)
_LINE = re.compile(r"\bline (\d{1,5})\b", re.IGNORECASE)
_UNDONE = re.compile(
    r"\b(?:remov\w+|taking|took|revert\w*|disabl\w+|chang\w+|sett?(?:ing)?|add(?:ing|ed)?|replac\w+"
    r"|commenting)\b(?:[^.\n]|\.(?!\s)){0,120}"
    r"\b(?:helps?|helped|fix(?:es|ed)|solve[sd]|resolve[sd]|works?|gave|gives?|expected|correct|gone)\b",
    re.IGNORECASE,
)
"""Words of a sentence that says what removes the failure."""
_NOT_GIVEN = re.compile(
    r"\bdoes(?:n't| not) (?:take|pass|forward|accept)\b|\b(?:not|never) (?:passed|forwarded|handed on|used)\b"
    r"|\bmissing (?:the )?(?:\S+ )?argument\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\bbefore (?:it is|they are|the \w+ (?:is|are|was|has))\b|\btoo (?:early|late)\b|\bin the wrong order\b",
    re.IGNORECASE,
)
_SYNCHRONISED = re.compile(r"\bsynchroni[sz]\w*|\b(?:not|never) (?:reduced|gathered|averaged)\b", re.IGNORECASE)
_NOT_REACHED = re.compile(
    r"\b(?:never|not|no longer) (?:called|used|passed|reduced|restored|copied|forwarded|synchroni[sz]ed|gathered"
    r"|updated|reset|registered|handed on)\b|\breturns? early\b|\bearly return\b|\bsilently\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\?\s*$")
_FEWEST_WORDS = 6


class ProofKind(StrEnum):
    """What would prove a supposed cause."""

    UNDONE = "undone"
    """It comes and goes with one change that the report names."""
    NOT_GIVEN = "not given"
    """An argument or a value does not arrive."""
    NOT_SYNCHRONISED = "not synchronised"
    """Ranks keep values of their own."""
    NOT_REACHED = "not reached"
    """Something is not done."""
    ORDER = "order"
    """Two things are done in the wrong order."""
    VALUE = "value"
    """A value is wrong behind one place."""


@dataclass(frozen=True)
class Hypothesis:
    """A supposed cause."""

    sentence: str
    proof: ProofKind
    place: str = ""
    """The file, with its line if the report names it."""
    package: str = ""
    """The library that has the place; empty if unknown."""
    minor: str = ""
    """The first release of the line of releases in use: `4.53`."""

    @property
    def check(self) -> str:
        """What proves it, or shows that it is not the cause."""
        place = self.place or "that place"
        return {
            ProofKind.UNDONE: "this change alone, then undone, with the same seed and batch: the failure goes and comes"
            " with it",
            ProofKind.NOT_GIVEN: "print the names that arrive in the called function (its arguments, batch.keys()): not"
            " among them: proved",
            ProofKind.NOT_SYNCHRONISED: "print(rank, step, sum(p.double().sum().item() for p in model.parameters()))  #"
            " behind two steps (or the value in question): another number on each rank: proved",
            ProofKind.NOT_REACHED: f"print(rank, step, value) in {place} in front of what is left out and behind it: no"
            " second line, or an equal value: proved",
            ProofKind.ORDER: "print a line with the step in each of both calls: their order in the log proves it",
            ProofKind.VALUE: f"print(v.dtype, v.shape, v.float().sum()) in front of {place} and behind it: right before"
            " and wrong behind: proved; wrong before: the cause is earlier",
        }[self.proof]

    @property
    def release(self) -> str:
        """The release that tells whether it is new; empty if unknown."""
        return (
            f"pip install '{self.package}<{self.minor}' for one try: gone: it came with {self.minor}"
            if self.minor
            else ""
        )


def find_hypothesis(issue: Issue) -> Hypothesis | None:
    """Return what an issue takes for the cause; None if it supposes nothing, or names no code for it."""
    sentences = [text for text in _SENTENCE.split(issue.seen) if _is_statement(text)]
    stated = [text for text in sentences if _EXPLICIT.search(text) and not _UNKNOWN.search(text)]
    mechanisms = [
        text for text in (issue.title, *sentences) if _MECHANISM.search(text) and len(text.split()) >= _FEWEST_WORDS
    ]
    sentence = next((text for text in (*stated, *mechanisms) if _CODE.search(_around(text, sentences))), "")
    if not sentence:
        return None
    around = _around(sentence, sentences)
    lines = _LINE.findall(sentence)
    found = _PLACE.search(around)
    line = (lines[-1] if lines else found["line"]) if found else ""
    place = f"{found['file']}{f':{line}' if line else ''}" if found else ""
    proof = _proof(sentence, around)
    if proof is ProofKind.VALUE and not place:
        return None  # nothing is named at which a value could be printed
    return Hypothesis(" ".join(sentence.split()), proof, place, *_package(around, issue))


def _around(sentence: str, sentences: Sequence[str]) -> str:
    """Return a sentence with the one before it and the two behind it."""
    at = sentences.index(sentence) if sentence in sentences else None
    return sentence if at is None else " ".join(sentences[max(at - 1, 0) : at + 3])


def _is_statement(text: str) -> bool:
    return not _QUESTION.search(text)


def _proof(sentence: str, around: str) -> ProofKind:
    if _UNDONE.search(around):
        return ProofKind.UNDONE
    if _NOT_GIVEN.search(sentence):
        return ProofKind.NOT_GIVEN
    if _SYNCHRONISED.search(sentence):
        return ProofKind.NOT_SYNCHRONISED
    if _NOT_REACHED.search(sentence):
        return ProofKind.NOT_REACHED
    return ProofKind.ORDER if _ORDER.search(sentence) else ProofKind.VALUE


def _package(text: str, issue: Issue) -> tuple[str, str]:
    """Return the library whose file a text names, and the first release of the line in use; empty if unknown."""
    for name, versions in issue.versions.items():
        if re.search(rf"\b{re.escape(name)}(?:'s|'| |/)\W{{0,3}}[\w/]+\.py\b", text, re.IGNORECASE):
            try:
                release = Version(versions[0]).release
            except InvalidVersion:
                continue
            minor = ".".join(map(str, release[:2]))
            return (name, minor) if is_listed(name, f"{minor}.0") else ("", "")
    return "", ""
