"""What an issue without an error reports: the symptom, and a change of release after which it began.

The tables in `symptoms/` have the symptoms, each with its causes and documented failures that show it. A symptom has
many causes, so none of these is more than possible.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from repros.diagnose.issue.issue import Issue
from repros.diagnose.messages.family import Cause, read_causes
from repros.model.packages import canonical_name

FOLDER = Path(__file__).with_name("symptoms")
_LONGEST_SENTENCE = 200
_LIBRARIES = (
    *("torch", "pytorch", "lightning", "pytorch[- ]lightning", "transformers", "accelerate", "trl", "peft", "datasets"),
    *("bitsandbytes", "torchmetrics", "deepspeed"),
)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """after again before between does each first from gives goes have into last loss made makes model more never
        nothing only other same second silently step steps than that their them then they training trained trains what
        when where which with without weight weights wrong""",
    )
)
"""Words of titles that any report of a training has."""
_RELEASE = r"v?(?P<{}>\d+\.\d+(?:\.\d+)?)"
_UPGRADE = re.compile(
    rf"(?<![\w-])(?P<name>{'|'.join(_LIBRARIES)})\b[^.\n\d]{{0,40}}?{_RELEASE.format('old')}"
    rf"[^.\n\d]{{0,40}}?(?:->|→|=>|\bto\b|\bvs\.?|\bversus\b|\bagainst\b|\band\b)[^.\n\d]{{0,40}}?{_RELEASE.format('new')}",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    rf"(?<![\w-])(?P<name>{'|'.join(_LIBRARIES)})\b[^.\n\d]{{0,20}}?{_RELEASE.format('new')}\+?\s+"
    r"(?:breaks|broke|introduce[sd]?|changed|regress\w*|fails|no longer|stopped)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:upgrad\w*|updat\w*|downgrad\w*|regress\w*|since|worked|works|broke\w*|against|after)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Symptom:
    """Something that people report of a training that raises no error."""

    name: str
    title: str
    patterns: tuple[re.Pattern[str], ...]
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


@dataclass(frozen=True)
class ReportedSymptom:
    """A symptom in the text of an issue."""

    symptom: Symptom
    sentence: str
    """The part of the text that reports it."""


@dataclass(frozen=True)
class Upgrade:
    """Two releases of a package, between which a behaviour changed."""

    package: str
    old: str
    """Empty if the issue states only the newer one."""
    new: str


@cache
def load_symptoms() -> tuple[Symptom, ...]:
    """Return the symptoms: the specific ones in the order of files and tables, then the general ones."""
    symptoms = [symptom for file in sorted(FOLDER.glob("*.toml")) for symptom in _read_file(file)]
    return tuple(sorted(symptoms, key=lambda symptom: symptom.is_general))


def _read_file(file: Path) -> Iterator[Symptom]:
    for name, table in tomllib.loads(file.read_text("utf-8")).items():
        yield Symptom(
            name,
            table["title"],
            tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in table["patterns"]),
            tuple(table["ids"]),
            table["check"],
            tuple(table["next"]),
            read_causes(table.get("causes", ())),
            table.get("general", False),
        )


def find_symptom(issue: Issue) -> ReportedSymptom | None:
    """Return the symptom of an issue, of its title if that has one; None if its words report none."""
    for text in (issue.title, issue.seen):
        for symptom in load_symptoms():
            for pattern in symptom.patterns:
                if found := pattern.search(text):
                    return ReportedSymptom(symptom, _sentence(text, found.start(), found.end()))
    return None


def possible_causes(symptom: Symptom, issue: Issue) -> tuple[Sequence[Cause], Sequence[Cause]]:
    """Return the causes that an issue does not exclude: those of which it names something, and the others.

    Both are in the order in which public threads have them.
    """
    text = "\n".join((issue.title, issue.seen, issue.code.source if issue.code else "", *issue.printed.seen))

    def has(expressions: Iterable[str]) -> bool:
        return any(re.search(expression, text, re.IGNORECASE) for expression in expressions)

    possible = [cause for cause in symptom.causes if not has(cause.unless)]
    named = [cause for cause in possible if has(cause.evidence)]
    return named, [cause for cause in possible if cause not in named]


def find_upgrade(issue: Issue) -> Upgrade | None:
    """Return the change of a release after which the issue reports another behaviour; None if it states none."""
    for text in (issue.title, issue.seen):
        for found in _overlapping(text) if _CHANGE.search(text) else ():
            old, new = sorted((found["old"], found["new"]), key=Version)
            if old != new:
                return Upgrade(_package(found["name"]), old, new)
    broken = _BROKEN.search(issue.title) or _BROKEN.search(issue.seen)
    return Upgrade(_package(broken["name"]), "", broken["new"]) if broken else None


def _overlapping(text: str) -> Iterator[re.Match[str]]:
    """Yield all pairs of releases; the second release of one may be the first of the next."""
    at = 0
    while found := _UPGRADE.search(text, at):
        yield found
        at = found.start() + 1


def rank_by_words(failures: Iterable[tuple[str, str]], text: str) -> Sequence[tuple[str, str]]:
    """Return the failures, ids and titles, of which a text names something, those first that share most words with it.

    A failure needs an ingredient, such as a scaler or a sampler; a text that does not name it does not suggest it.
    """
    words = set(_words(text)) - _COMMON
    shared = {failure: len(words & set(_words(failure[1]))) for failure in failures}
    return sorted((failure for failure, number in shared.items() if number), key=lambda failure: -shared[failure])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z_]{4,}", text.lower())


def _package(name: str) -> str:
    package = canonical_name(name.replace(" ", "-"))
    return "torch" if package == "pytorch" else package


def _sentence(text: str, start: int, end: int) -> str:
    """Return the sentence around a part of a text, on one line."""
    begin = max(text.rfind(mark, 0, start) for mark in (". ", "\n", "! ", "? "))
    stops = [at for at in (text.find(mark, end) for mark in (". ", "\n", "! ", "? ")) if at >= 0]
    sentence = " ".join(text[begin + 1 : min(stops, default=len(text))].split())
    return sentence if len(sentence) <= _LONGEST_SENTENCE else f"{sentence[:_LONGEST_SENTENCE]} [...]"
