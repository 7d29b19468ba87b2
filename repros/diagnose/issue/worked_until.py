"""A program that worked until some day with the same code: what is new since then are its packages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from repros.diagnose.issue.facts import is_denied
from repros.diagnose.issue.issue import Issue

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = re.compile(r"\b(?P<year>20\d\d)[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})\b")
"""Without points, which releases have: `2023.9.2`."""
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>20\d\d)\b"
_NAMED = (
    re.compile(rf"\b{_DAY}(?: of)? {_MONTH},? {_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_MONTH} {_DAY},? {_YEAR}", re.IGNORECASE),
)
_AGO = re.compile(
    r"\b(?:yesterday|last (?:week|month|night|year|weekend|\w+day)"
    r"|(?:an?|one|two|three|four|five|six|a few|some|several|a couple of|\d{1,2})"
    r" (?:days?|weeks?|months?) (?:ago|back))\b",
    re.IGNORECASE,
)
_SUBJECT = (
    r"(?:it|this|that|everything|all|training|(?:i|we) (?:ran|trained|used) (?:it|this|that|the same|exactly)"
    r"|(?:the same|the|my|our|this) (?:\w+ )?(?:code|script|training|run|program|model|notebook|pipeline|config\w*"
    r"|job|command))"
)
_WORKED = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!have )(?<!had )(?<!'ve )\bworked\b(?! (?:on|at|around) (?:an?|the|this|that|it|my|our"
    r"|fixing)\b)"
    r"|(?<!\bi )(?<!\bwe )\b(?:was|were) (?:still |all )?(?:working(?! on\b)|fine|ok(?:ay)?|good)\b"
    rf"|\b{_SUBJECT} (?:\w+ ){{0,2}}(?:ran|trained)\b|\b(?:ran|trained) (?:well|fine|normally|ok(?:ay)?|without)\b"
    r"|\b(?:i|we) (?:ran|trained|used) (?:it|this|that|the same|exactly)\b"
    r"|\b(?:could|(?:was|were) able to) (?:train|run|use)\b|\b(?:good|working|successful) (?:run|training|job)\b"
    r"|\b(?:ran|trained|finished|completed|worked) (?:\w+ )?successful\w*|\bsuccessfully (?:ran|trained|finished"
    r"|completed)\b"
    r"|\bno problems?\b",
    re.IGNORECASE,
)
"""That the program worked, not a person, a part of it or another program."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NOW = re.compile(
    r"\bnow\b|\btoday\b|\bno longer\b|\bany ?more\b|\bsuddenly\b|\bsince\b|\buntil\b|\bup to\b"
    r"|\bsame code\b|\bafter (?:the |an? )?(?:update|upgrade)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class WorkedUntil:
    """The day on which a program worked last."""

    words: str
    """The day as the report has it: `4 days ago`."""
    day: date | None = None
    """None if the report has it as an interval, of which the end is unknown."""

    @property
    def text(self) -> str:
        """What follows from it, and what to try."""
        day = self.day.isoformat() if self.day else "YYYY-MM-DD"
        return (
            f"it worked until {self.words}: what has changed by itself are the packages; an environment of that day is"
            f" made by uv pip install --exclude-newer {day} with the same names, and pip freeze of both names what is"
            " newer"
        )


def find_worked_until(issue: Issue) -> WorkedUntil | None:
    """Return until when a report says that its program worked; None if it does not."""
    sentences = _SENTENCE.split(issue.seen)
    for at, sentence in enumerate(sentences):
        around = " ".join(sentences[max(at - 1, 0) : at + 2])
        worked = any(not is_denied(sentence, found.start()) for found in _WORKED.finditer(sentence))
        if not worked or not _NOW.search(around):
            continue
        if found := _date_in(sentence):
            return found
        if ago := _AGO.search(sentence):
            return WorkedUntil(ago[0])
    return None


def _date_in(sentence: str) -> WorkedUntil | None:
    for pattern in (_NUMBERS, *_NAMED):
        if found := pattern.search(sentence):
            month = found["month"]
            number = int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1
            try:
                return WorkedUntil(found[0], date(int(found["year"]), number, int(found["day"])))
            except ValueError:
                continue
    return None
