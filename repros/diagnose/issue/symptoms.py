"""What an issue without an error reports: the symptom.

The tables in `symptoms/` have the symptoms, each with its causes and documented failures that show it. A symptom has
many causes, so none of these is more than possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repros.diagnose.issue import needles
from repros.diagnose.issue.complaints import complaints
from repros.diagnose.issue.facts import HasFact, is_denied
from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.needles import Needles, has_needles, needles_of
from repros.diagnose.messages import family
from repros.diagnose.messages.family import Cause, read_causes
from repros.model.cache.snapshot import remember

FOLDER = Path(__file__).with_name("symptoms")
_LONGEST_SENTENCE = 200
_MOST_LINES = 2
"""Sentences that a symptom's words may be in."""
_RESULT = re.compile(r"\b(?:loss\w*|accuracy|rewards?|scores?|metrics?|norms?|lr|rate|steps? \d+ to)\b", re.IGNORECASE)
"""Words of a sentence about a number, which may be stuck as well."""
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """after again before between does each first from gives goes have into last loss made makes model more never
        nothing only other same second silently step steps than that their them then they training trained trains what
        when where which with without weight weights wrong""",
    )
)
"""Words of titles that any report of a training has."""


@dataclass(frozen=True)
class Symptom:
    """Something that people report of a training that raises no error."""

    name: str
    title: str
    patterns: tuple[str, ...]
    """Regular expressions, whatever the case."""
    needles: tuple[Needles, ...]
    """For each expression, groups of texts: every text with a match has one of each."""
    ids: tuple[str, ...]
    """Documented failures that show it."""
    check: str
    """How to distinguish its causes."""
    next: tuple[str, ...]
    """Commands, with `{script}` for the program."""
    causes: tuple[Cause, ...] = ()
    """In the order in which public threads have them."""
    is_general: bool = False
    """Whether it is tried after those that are not."""
    is_stop: bool = False
    """Whether the program hangs, runs out of memory or may end in an error, so that it has no result."""
    excluded_by: tuple[str, ...] = ()
    """Facts of a report that does not have it, whatever its words."""
    checks: tuple[tuple[str, str], ...] = ()
    """Expressions of wrappers, whatever the case, and the check that works with each."""

    @property
    def ends_early(self) -> bool:
        """Whether the program hangs or runs out of memory, so that no value is reached that could be printed."""
        return self.name.startswith(("hang", "memory"))

    def search(self, text: str, lower: str) -> re.Match[str] | None:
        """Return where a text reports it and does not deny it; None if it does not.

        Args:
            text: the text.
            lower: the text in lower case.
        """
        for pattern, words in zip(self.patterns, self.needles, strict=True):
            if has_needles(words, lower):
                found = re.finditer(pattern, text, re.IGNORECASE | re.DOTALL)
                if stated := next((one for one in found if not is_denied(text, one.start())), None):
                    return stated
        return None


@dataclass(frozen=True)
class ReportedSymptom:
    """A symptom in the text of an issue."""

    symptom: Symptom
    sentence: str
    """The part of the text that reports it."""


@cache
def load_symptoms() -> tuple[Symptom, ...]:
    """Return the symptoms: the specific ones in the order of files and tables, then the general ones."""
    files = sorted(FOLDER.glob("*.toml"))
    return remember("symptoms", [*files, __file__, family.__file__, needles.__file__], lambda: _read_files(files))


def _read_files(files: Iterable[Path]) -> tuple[Symptom, ...]:
    symptoms = [symptom for file in files for symptom in _read_file(file)]
    return tuple(sorted(symptoms, key=lambda symptom: symptom.is_general))


def _read_file(file: Path) -> Iterator[Symptom]:
    import tomllib  # noqa: PLC0415 - only what has changed is read

    for name, table in tomllib.loads(file.read_text("utf-8")).items():
        yield Symptom(
            name,
            table["title"],
            tuple(table["patterns"]),
            tuple(map(needles_of, table["patterns"])),
            tuple(table["ids"]),
            table["check"],
            tuple(table["next"]),
            read_causes(table.get("causes", ())),
            table.get("general", False),
            table.get("stop", False),
            tuple(table.get("excluded_by", ())),
            tuple(table.get("checks", {}).items()),
        )


def find_symptom(
    issue: Issue,
    has: HasFact = lambda _: False,
    is_excluded: Callable[[str], bool] = lambda _: False,
    *,
    is_crash: bool = False,
) -> ReportedSymptom | None:
    """Return the symptom of an issue, of its title if that has one; None if its words report none.

    A program that does not move has no result, so a general symptom of the title gives way to a hang in the text.

    Args:
        issue: the issue.
        has: says whether it states a fact, by its name; symptoms that one excludes are left out.
        is_excluded: says whether the conditions of the run exclude a symptom, by its title.
        is_crash: whether the program ends in an error: then only symptoms count that such a program may have.
    """
    tried = [
        symptom
        for symptom in load_symptoms()
        if (symptom.is_stop or not is_crash)
        and not any(map(has, symptom.excluded_by))
        and not is_excluded(symptom.title)
    ]
    of_title, complaint = _first(issue.title, tried), complaints(issue.seen)
    if of_title and (of_title.symptom.is_stop or not of_title.symptom.is_general):
        return of_title
    stops = [symptom for symptom in tried if symptom.is_stop] if issue.is_hang else []
    lines = (line for line in complaint.split("\n") if not _RESULT.search(line))
    hang = next(filter(None, (_first(line, stops) for line in lines)), None)
    return hang or of_title or _first(complaint, tried)


def _first(text: str, symptoms: Iterable[Symptom]) -> ReportedSymptom | None:
    """Return the first symptom that one line of a text reports, or two that follow each other."""
    lower = text.lower()
    for symptom in symptoms:
        found = symptom.search(text, lower)
        if found and found[0].count("\n") < _MOST_LINES:
            return ReportedSymptom(symptom, _sentence(text, found.start(), found.end()))
    return None


def possible_causes(symptom: Symptom, issue: Issue) -> tuple[Sequence[Cause], Sequence[Cause]]:
    """Return the causes that an issue does not exclude: those of which it names something, and the others.

    Both are in the order in which public threads have them.
    """
    text = _searched(issue)
    possible = [cause for cause in symptom.causes if not _has(cause.unless, text)]
    named = [cause for cause in possible if _has(cause.evidence, text)]
    return named, [cause for cause in possible if cause not in named]


def _searched(issue: Issue) -> str:
    return "\n".join((issue.title, issue.seen, issue.code.source if issue.code else "", *issue.printed.seen))


def _has(expressions: Iterable[str], text: str) -> bool:
    return any(re.search(expression, text, re.IGNORECASE) for expression in expressions)


def check_of(symptom: Symptom, possible: Sequence[Cause], issue: Issue, has: HasFact = lambda _: False) -> str:
    """Return the check that decides between the causes that a report leaves.

    It is the own check of the first cause if the report states a fact for it or leaves no other, else that of the
    wrapper that the report names, else the symptom's.

    Args:
        symptom: the symptom.
        possible: its causes that the report leaves, the first ones first.
        issue: the issue.
        has: says whether it states a fact.
    """
    first = possible[0] if possible else None
    is_apart = first and first.check and (len(possible) == 1 or any(map(has, first.favoured_by)))
    if first and is_apart:
        return first.check
    text = "\n".join((issue.title, issue.seen, issue.code.source if issue.code else ""))
    fitting = (check for wrapper, check in symptom.checks if re.search(wrapper, text, re.IGNORECASE))
    return next(fitting, symptom.check)


def rank_by_words(failures: Iterable[tuple[str, str]], text: str, fewest: int = 1) -> Sequence[tuple[str, str]]:
    """Return the failures, ids and titles, of which a text names something, those first that share most words with it.

    A failure needs an ingredient, such as a scaler or a sampler; a text that does not name it does not suggest it.

    Args:
        failures: ids and titles.
        text: the words of a report.
        fewest: words of a title that the text has.
    """
    words = set(_words(text)) - _COMMON
    shared = {failure: len(words & set(_words(failure[1]))) for failure in failures}
    return sorted(
        (failure for failure, number in shared.items() if number >= fewest), key=lambda failure: -shared[failure]
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z_]{4,}", text.lower())


def _sentence(text: str, start: int, end: int) -> str:
    """Return the sentence around a part of a text, on one line."""
    begin = max(text.rfind(mark, 0, start) for mark in (". ", "\n", "! ", "? "))
    stops = [at for at in (text.find(mark, end) for mark in (". ", "\n", "! ", "? ")) if at >= 0]
    sentence = " ".join(text[begin + 1 : min(stops, default=len(text))].split())
    return sentence if len(sentence) <= _LONGEST_SENTENCE else f"{sentence[:_LONGEST_SENTENCE]} [...]"
