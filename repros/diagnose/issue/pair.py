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


_WORKS = (
    r"(?<!n't )(?<!not )(?<!never )(?<!nothing )(?:works?|worked|working|(?:is|are|was|were|be|seems?"
    r"|looks?) (?:all )?(?:fine|ok|okay|right|correct|normal|good|stable)"
    r"|everything is ok|decreases? (?:normally|as expected)|trains? (?:well|fine|normally)|train(?:s|ed)? (?:well"
    r"|fine|normally)"
    r"|converges?|succeeds?|passes|no (?:such )?(?:problems?|issues?|errors?(?! (?:messages?|logs?|traces?)\b))"
    r"|(?:problem|issue|error|nan|leak|hang)s? "
    r"(?:goes away|disappears|vanish\w*|is gone|does(?:n't| not) (?:occur|happen|appear))"
    r"|(?:did|does|do)(?:n't| not) (?:occur|happen|appear|crash|hang|fail|cause)\b[^.\n,;]{0,30}|normal(?:ly)?"
    r"|(?:falls?|learns|trains) as (?:usual|expected)|no such trouble|runs? (?:fine|well))"
)
_NAME = r"(?P<part>(?:the |my |an? |any )?[`'\"]?[\w./=:-]+[`'\"]?(?: [`'\"]?[\w./=:-]+[`'\"]?){0,3}?)"
_END = (
    r"(?=\s*(?:[.,;:!?)\n]|$|\b(?:it|the|and|but|so|then|everything|training|loss|i|we|which|while|with|for|in|on"
    r"|to|is|are)\b))"
)
_WITHOUT = (
    r"(?:without(?: using| enabling)?|(?:when|if|after|by|once) (?:i |we |you )?(?:am |are |do |is )?(?:not "
    r"|n't )(?:using|use|enable|enabling)"
    r"|(?:i|we) (?:am|are|'m|do) (?:not|n't) (?:using|use)"
    r"|(?:when|if|after|by|once|upon)?\s*(?:i |we |you )?(?:disabl\w+|turn(?:ed|ing|s)? off|remov\w+|switch\w* off"
    r"|comment\w* out|uninstall\w+|dropp(?:ed|ing)))"
)
_OFF = r"(?<![\w.])[A-Za-z_][\w.]*`? ?(?:=|:|to) ?`?[\"']?(?:False|0|None|off|eager|sdpa|disabled?)\b[\"']?`?"
# Not compiled at once: few sentences have one of the words in front of each.
_LEFT_OUT = (
    "without",
    "n't us",
    "not us",
    "not enabl",
    "disabl",
    "turn",
    "remov",
    "switch",
    "comment",
    "uninst",
    "dropp",
)
_PART = (
    (_LEFT_OUT, rf"\b{_WORKS}\b[^.\n;]{{0,50}}?\b{_WITHOUT} {_NAME}{_END}"),
    (_LEFT_OUT, rf"\b{_WITHOUT} {_NAME}{_END}[^\n;]{{0,60}}?\b{_WORKS}\b"),
    (
        (" on:", " on,", "enabled:", "enabled,"),
        rf"\b{_NAME} (?:on|enabled)[:,][^.\n]{{0,60}}?\b(?:off|disabled)[:,] ?(?:it )?{_WORKS}\b",
    ),
    (
        ("removed:", "removed,", "disabled:", "disabled,", " off:", " off,", "uninstalled"),
        rf"\b{_NAME} (?:removed|disabled|off|uninstalled)[:,] ?[^.\n;]{{0,30}}?\b{_WORKS}\b",
    ),
    (
        (" at 0", " off", "disabled", "removed", "= 0", "=0", "set to"),
        rf"\b{_WORKS} with {_NAME} (?:at 0|off|disabled|removed|= ?0|set to (?:0|False|None))\b",
    ),
    (
        ("only ",),
        (
            r"\bonly (?:happens?|occurs?|fails?|appears?|crash\w*|hangs?) (?:when|if|with)(?: i| we| you)?"
            rf"(?: am| are)?(?: use| using| enabl\w+| turn\w* on| set(?:ting)?)? {_NAME}{_END}"
        ),
    ),
)
_PROGRAM = (
    (
        ("repo", "framework", "trainer", "library", "codebase", "implementation", "toolkit"),
        (
            rf"\b{_WORKS}\b[^.\n;]{{0,40}}?\b(?:using|with|in|by) {_NAME} (?:repo(?:sitory)?|framework|trainer"
            rf"|library"
            r"|codebase|implementation|toolkit)\b"
        ),
    ),
    (
        (" the same ",),
        rf"(?:^|[.;\n] ?){_NAME} (?:at|with|on|from) the same [\w ]{{2,40}}: ?[^.\n;]{{0,20}}?\b{_WORKS}\b",
    ),
)
_MODEL = (
    (
        (" same command", " same script", " same code", " same config", " same settings"),
        (
            r"\bthe same (?:command|script|code|config\w*|settings)\b[^.\n;]{0,20}? (?:on|with|for) "
            rf"(?P<part>(?:the |an? )?[\w./-]+(?: [\w./-]+){{0,4}}?) (?:does|do|{_WORKS})\b"
        ),
    ),
)
_SET = (
    (
        ("false", "none", "0", "off", "eager", "sdpa", "disable"),
        (
            rf"(?P<part>{_OFF})[^.\n;]{{0,40}}?(?<!not )(?<!n't )\b(?:{_WORKS}|fix(?:es|ed)|solve[sd]|resolve[sd]"
            rf"|helps"
            rf"|avoids)\b"
        ),
    ),
    (
        ("false", "none", "0", "off", "eager", "sdpa", "disable"),
        rf"\b{_WORKS}\b[^.\n;]{{0,30}}?\b(?:with|when|if)(?: i| we)?(?: set(?:ting)?)? `?(?P<part>{_OFF})",
    ),
)
"""What is switched off where it works."""
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
    rf"\b{_WORKS}\b|\b(?:differ\w*|whereas|vs\.?|versus|compared|mismatch\w*|inconsisten\w*|not match|n't match"
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
    if part := _search(text, _PART):
        yield Sides(PairKind.PART, f"without {part}", f"with {part}")
    if setting := _search(text, _SET).replace("`", ""):
        yield Sides(PairKind.PART, f"with {setting}", f"without {setting}")
    if other := _search(text, _PROGRAM):
        yield Sides(PairKind.PROGRAM, f"in {other}", "here")
    if other := _search(text, _MODEL):
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
            if re.search(rf"\b{_WORKS}\b", clause, re.IGNORECASE):
                return Sides(kind, inside[0], other)
            if _FAILS.search(clause):
                return Sides(kind, other, inside[0])
    one, other = sides
    return Sides(kind, one, other, is_ordered=False)
