"""The two sides that a report compares itself, one of which works: what differs, in which quantity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.named_sides import find_named
from repros.diagnose.issue.pair_words import MODEL, PART, PROGRAM, SET, WORKS
from repros.diagnose.issue.tried import shorten_negations


class PairKind(StrEnum):
    """What differs between the two sides."""

    COMPILED = "compiled"
    STAGE = "stage"
    RANKS = "ranks"
    DEVICE = "device"
    DTYPE = "dtype"
    PROGRAM = "program"
    """Another program or library does the same."""
    LOADER = "loader"
    FUNCTION = "function"
    SETTING = "setting"
    CHECKPOINT = "checkpoint"
    MODEL = "model"
    """The same command with another model or data set."""
    PART = "part"
    """A library, an option or a part of the program that one side is without."""


class Quantity(StrEnum):
    """What differs in the result."""

    GRADIENT = "gradient"
    CRASH = "crash"
    HANG = "hang"
    SPEED = "speed"
    MEMORY = "memory"
    VALUE = "value"
    """A loss, an output, a metric."""


@dataclass(frozen=True)
class Pair:
    """Two sides."""

    kind: PairKind
    works: str
    """In the report's own words."""
    fails: str
    quantity: Quantity
    is_ordered: bool = True
    """Whether the report says which of both works."""

    @property
    def is_named(self) -> bool:
        """Whether the report names both sides, so that their comparison says more than a list of causes."""
        return self.kind in _NAMED_KINDS

    @property
    def sentence(self) -> str:
        """What it compares."""
        if self.is_ordered:
            return f"works: {self.works}; fails: {self.fails}"
        one, other = (side.partition(" ")[2] for side in (self.works, self.fails))  # without `with` or `on`
        return f"{one} against {other}"


_NAMED_KINDS = {
    PairKind.COMPILED,
    PairKind.LOADER,
    PairKind.FUNCTION,
    PairKind.SETTING,
    PairKind.CHECKPOINT,
}


class Sides(NamedTuple):
    """The two sides in one sentence."""

    kind: PairKind
    works: str
    fails: str
    is_ordered: bool = True


class Words(NamedTuple):
    """The words of sides that have names."""

    before: str
    """What precedes a name."""
    pattern: re.Pattern[str]
    names: Mapping[str, str]
    """Other names of a side."""


_ARTICLES = frozenset({"the", "my", "a", "an", "any"})
_STOP = frozenset(
    """it this that them any the a an issue issues problem problems error errors success luck effect change changes
    changing code help more further use using need me us you of call check line lines step steps error""".split()  # noqa: SIM905 - a list of words
)
_COMPILED = re.compile(r"\b(?:torch\.compile\w*|inductor|compiled?)\b", re.IGNORECASE)
_EAGER = re.compile(r"\beager(?:ly)?\b|\buncompiled\b|\bwithout (?:torch\.)?compil\w+", re.IGNORECASE)
_ONE, _MANY = (
    re.compile(r"\b(?:single|one|1)[- ](?:gpu|card|process|rank|node|device)s?\b|单卡", re.IGNORECASE),
    re.compile(
        r"\b(?:multi(?:ple)?[- ]?(?:gpu|card|process|node|device)s?|(?:two|four|eight|[2-9]|\d\d)[- ]?(?:x )?(?:gpu"
        r"|card|rank|node"
        r"|process)e?s?|ddp|fsdp2?)\b|多卡",
        re.IGNORECASE,
    ),
)
_NAMED = {
    PairKind.STAGE: Words(
        "with ZeRO stage", re.compile(r"\b(?:zero[- _]?(?:stage)?|stage)[- _=]*([0-3])\b", re.IGNORECASE), {}
    ),
    PairKind.DEVICE: Words("on", re.compile(r"\b(cpu|cuda|mps|xpu|npu|tpu)\b", re.IGNORECASE), {}),
    PairKind.DTYPE: Words(
        "in",
        re.compile(r"\b(fp32|float32|fp16|float16|bf16|bfloat16|fp8|float8)\b", re.IGNORECASE),
        {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8": "fp8"},
    ),
}
"""Kinds whose sides have names."""
_CLAUSE = re.compile(r"[,;.:\n]|\b(?:but|while|whereas|and)\b")
_FAILS = re.compile(
    r"\b(?:fails?|failed|crash\w*|errors?|hangs?|nan|wrong\w*|incorrect\w*|not|worse|slower|diverge\w*|raises?)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_DIFFERS = re.compile(
    rf"\b{WORKS}\b|\b(?:differ\w*|whereas|vs\.?|versus|compared|mismatch\w*|inconsisten\w*|not match|n't match"
    r"|(?:another|other) [^.\n]{1,50} than)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(r"\b(?:incorrect\w*|wrong\w*|off by|silent\w*)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;。])\s+|\n+")
_QUANTITIES = (
    (Quantity.GRADIENT, re.compile(r"\bgrad(?:ient|s|_norm)\w*|\bbackward\b", re.IGNORECASE)),
    (Quantity.MEMORY, re.compile(r"\bmemory\b|\boom\b|显存", re.IGNORECASE)),
    (Quantity.SPEED, re.compile(r"\bslow\w*|\bfast\w*|\bspeed\b|\bthroughput\b|速度", re.IGNORECASE)),
)


def find_pair(issue: Issue, *, is_crash: bool) -> Pair | None:
    """Return the two sides that a report compares; None if it compares none.

    Args:
        issue: the issue.
        is_crash: whether it reports a crash.
    """
    sentences = [issue.title, *_SENTENCE.split(shorten_negations(issue.seen))]
    pairs = [f"{sentence} {following}" for sentence, following in pairwise(sentences[1:])]
    titled = [f"{issue.title}\n{sentence}" for sentence in sentences[1:4]]
    for text in (*sentences, *pairs, *titled):
        if found := next(_all_sides(text, f"{issue.title}\n{issue.seen}"), None):
            is_hang = issue.is_hang and not is_crash
            quantity = Quantity.CRASH if is_crash else Quantity.HANG if is_hang else _quantity(issue.title, text)
            return Pair(found.kind, found.works, found.fails, quantity, found.is_ordered)
    return None


def _quantity(*texts: str) -> Quantity:
    for text in texts:
        for quantity, words in _QUANTITIES:
            if words.search(text):
                return quantity
    return Quantity.VALUE


def _search(text: str, patterns: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Return the name that the first pattern finds whose words a text has; empty if none does."""
    lower = text.lower()
    for words, pattern in patterns:
        if any(word in lower for word in words) and (name := _name(re.search(pattern, text, re.IGNORECASE))):
            return name
    return ""


def _name(found: re.Match[str] | None) -> str:
    """Return the name of a part, without its article; empty if its words name none."""
    words = [word for word in found["part"].split() if word.lower() not in _ARTICLES] if found else []
    name = " ".join(words).strip("`'\".,:")
    is_name = name and "`" not in name and not {word.lower() for word in name.split()} & _STOP and not name.isdigit()
    return name if is_name else ""


def _all_sides(text: str, whole: str) -> Iterator[Sides]:
    """Yield the two sides of each kind that a sentence compares; those that say only `with`, last."""
    named = find_named(text, whole)
    sides = [Sides(PairKind(named.kind), named.works, named.fails)] if named else []
    yield from (side for side in sides if side.kind is not PairKind.PART)
    yield from _sides(text)
    yield from sides


def _sides(text: str) -> Iterator[Sides]:
    """Yield the two sides of each kind that a sentence compares: what differs, what works, what fails."""
    if part := _search(text, PART):
        yield Sides(PairKind.PART, f"without {part}", f"with {part}")
    if setting := _search(text, SET).replace("`", ""):
        yield Sides(PairKind.PART, f"with {setting}", f"without {setting}")
    if other := _search(text, PROGRAM):
        yield Sides(PairKind.PROGRAM, f"in {other}", "here")
    if other := _search(text, MODEL):
        yield Sides(PairKind.MODEL, f"with {other}", "with this one")
    is_eager = _EAGER.search(text)
    if not _DIFFERS.search(text) and not (is_eager and _WRONG.search(text)):
        return
    if is_eager and _COMPILED.search(text):
        yield Sides(PairKind.COMPILED, "eager", "compiled")
    if (one := _ONE.search(text)) and (many := _MANY.search(text)):
        yield _ordered(text, PairKind.RANKS, {"with one process": one[0], f"with {many[0]}": many[0]})
    for kind, words in _NAMED.items():
        found = {
            f"{words.before} {words.names.get(name := m[1].lower(), name)}": m[0] for m in words.pattern.finditer(text)
        }
        if len(found) > 1 and (kind is not PairKind.DEVICE or "on cpu" in found):
            yield _ordered(text, kind, dict([*found.items()][:2]))


def _ordered(text: str, kind: PairKind, sides: Mapping[str, str]) -> Sides:
    """Return two sides; that works which is alone in the clause that says so, or not in the one that says it fails.

    Args:
        text: the sentence.
        kind: what differs.
        sides: both sides, and the words of each in the sentence.
    """
    for clause in _CLAUSE.split(text):
        inside = [side for side, words in sides.items() if words in clause]
        if len(inside) == 1:
            other = next(side for side in sides if side != inside[0])
            if re.search(rf"\b{WORKS}\b", clause, re.IGNORECASE):
                return Sides(kind, inside[0], other)
            if _FAILS.search(clause):
                return Sides(kind, other, inside[0])
    one, other = sides
    return Sides(kind, one, other, is_ordered=False)
