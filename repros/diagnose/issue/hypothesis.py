"""What a reporter takes for the cause: the sentence, and what would prove it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.proofs import ProofKind, Supposed, check_of_proof, is_of_data, is_of_ranks, proof_of
from repros.diagnose.messages.release_lists import is_listed

_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_EXPLICIT = re.compile(
    r"\b(?:i|we) (?:think|believe|suspect|guess|found|find|noticed|traced|debugged|figured|suppose)\b"
    r"|\b(?:root )?cause(?: of (?:it|this|the \w+))? (?:is|was|seems|may be|might be)\b|\b(?:caused|explained) by\b"
    r"|\bthe (?:problem|issue|bug|reason|culprit) (?:is|was|seems|lies|comes)\b|\bit turns out that\b"
    r"|\broot cause\b|\bsuspects?\b|\b(?:most likely|probably|presumably)\b[^.\n]{0,30}\b(?:since|because|due|as)\b"
    r"|\b(?:one )?can (?:be )?(?:mend|fix|repair|solve)(?:ed|d)? (?:it |this )?by\b"
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
_QUESTION = re.compile(r"\?\s*$")
_FEWEST_WORDS = 6
_REASON = re.compile(r"\b(?:if|when|since|because|as|while)\b", re.IGNORECASE)
"""Words in front of a reason."""
_OUTCOME = re.compile(
    r"(?:n't|\bnot|\bnever) (?:really |correctly |always )?(?:update the weights|train|learn|converge|work|improve"
    r"|decrease)\b",
    re.IGNORECASE,
)
"""Words of a sentence that reports what is seen, and no cause."""


@dataclass(frozen=True)
class Hypothesis:
    """A supposed cause."""

    sentence: str
    proof: ProofKind
    check: str
    """What proves it, or shows that it is not the cause."""
    place: str = ""
    """The file, with its line if the report names it."""
    package: str = ""
    """The library that has the place; empty if unknown."""
    minor: str = ""
    """The first release of the line of releases in use: `4.53`."""

    @property
    def release(self) -> str:
        """The release that tells whether it is new; empty if unknown."""
        return (
            f"pip install '{self.package}<{self.minor}' for one try: gone: it came with {self.minor}"
            if self.minor
            else ""
        )


def find_hypothesis(issue: Issue) -> Hypothesis | None:
    """Return what an issue takes for the cause; None if it supposes nothing, or names nothing to be proved."""
    sentences = [text for text in _SENTENCE.split(issue.seen) if _is_statement(text)]
    stated = [text for text in sentences if _EXPLICIT.search(text) and not _UNKNOWN.search(text)]
    mechanisms = [
        text
        for text in (issue.title, *sentences)
        if (_MECHANISM.search(text) or _is_of_ranks(text)) and len(text.split()) >= _FEWEST_WORDS
    ]
    sentence = next((text for text in (*stated, *mechanisms) if _names_cause(text, sentences)), "")
    if not sentence:
        return None
    around = _around(sentence, sentences)
    lines = _LINE.findall(sentence)
    found = _PLACE.search(around)
    line = (lines[-1] if lines else found["line"]) if found else ""
    place = f"{found['file']}{f':{line}' if line else ''}" if found else ""
    supposed = Supposed(sentence, around, place)
    proof = proof_of(supposed)
    is_shown = supposed.values or _MECHANISM.search(sentence) or not issue.is_hang
    if proof is ProofKind.VALUE and not (place and is_shown):
        return None  # nothing is named that could be printed, or no place to print it
    return Hypothesis(
        " ".join(sentence.split()), proof, check_of_proof(proof, supposed), place, *_package(around, issue)
    )


def _names_cause(text: str, sentences: Sequence[str]) -> bool:
    """Return whether a sentence names code, data or ranks that could be looked at, and not only the outcome."""
    if _OUTCOME.search(text):
        return False
    return bool(_CODE.search(_around(text, sentences))) or is_of_data(text) or _is_of_ranks(text)


def _is_of_ranks(text: str) -> bool:
    return bool(is_of_ranks(text) and _REASON.search(text))


def _around(sentence: str, sentences: Sequence[str]) -> str:
    """Return a sentence with the one before it and the two behind it."""
    at = sentences.index(sentence) if sentence in sentences else None
    return sentence if at is None else " ".join(sentences[max(at - 1, 0) : at + 3])


def _is_statement(text: str) -> bool:
    return not _QUESTION.search(text)


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
