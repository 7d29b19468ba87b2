"""The two sides that a report compares itself, one of which works: what differs, in which quantity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from repros.diagnose.issue.issue import Issue


class PairKind(StrEnum):
    """What differs between the two sides."""

    COMPILED = "compiled"
    STAGE = "stage"
    RANKS = "ranks"
    DEVICE = "device"
    DTYPE = "dtype"
    PROGRAM = "program"
    """Another program or library does the same."""
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


_WORKS = (
    r"(?<!n't )(?<!not )(?<!never )(?<!nothing )(?:works?|worked|working|(?:is|are|was|were|be|seems?"
    r"|looks?) (?:all )?(?:fine|ok|okay|right|correct|normal|good|stable)"
    r"|everything is ok|decreases? (?:normally|as expected)|trains? (?:well|fine|normally)|train(?:s|ed)? (?:well"
    r"|fine|normally)"
    r"|converges?|succeeds?|passes|no (?:such )?(?:problems?|issues?|errors?)|(?:problem|issue|error|nan|leak|hang)s? "
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
_PART = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_WORKS}\b[^.\n;]{{0,50}}?\b{_WITHOUT} {_NAME}{_END}",
        rf"\b{_WITHOUT} {_NAME}{_END}[^\n;]{{0,60}}?\b{_WORKS}\b",
        rf"\b{_NAME} (?:on|enabled)[:,][^.\n]{{0,60}}?\b(?:off|disabled)[:,] ?(?:it )?{_WORKS}\b",
        rf"\b{_NAME} (?:removed|disabled|off|uninstalled)[:,] ?[^.\n;]{{0,30}}?\b{_WORKS}\b",
        rf"\b{_WORKS} with {_NAME} (?:at 0|off|disabled|removed|= ?0|set to (?:0|False|None))\b",
    )
)
_ONLY = re.compile(
    r"\bonly (?:happens?|occurs?|fails?|appears?|crash\w*|hangs?) (?:when|if|with)(?: i| we| you)?"
    rf"(?: am| are)?(?: use| using| enabl\w+| turn\w* on| set(?:ting)?)? {_NAME}{_END}",
    re.IGNORECASE,
)
_OTHER = re.compile(
    rf"\b{_WORKS}\b[^.\n;]{{0,40}}?\b(?:using|with|in|by) {_NAME} (?:repo(?:sitory)?|framework|trainer|library|codebase"
    r"|implementation|toolkit)\b",
    re.IGNORECASE,
)
_SAME = re.compile(
    rf"(?:^|[.;\n] ?){_NAME} (?:at|with|on|from) the same [\w ]{{2,40}}: ?[^.\n;]{{0,20}}?\b{_WORKS}\b", re.IGNORECASE
)
_OFF = r"[A-Za-z_][\w.]*`? ?(?:=|:|to) ?`?[\"']?(?:False|0|None|off|eager|sdpa|disabled?)\b[\"']?`?"
_SET = re.compile(
    rf"(?P<setting>{_OFF})[^.\n;]{{0,40}}?(?<!not )(?<!n't )\b(?:{_WORKS}|fix(?:es|ed)|solve[sd]|resolve[sd]|helps"
    rf"|avoids)\b"
    rf"|\b{_WORKS}\b[^.\n;]{{0,30}}?\b(?:with|when|if)(?: i| we)?(?: set(?:ting)?)? `?(?P<set>{_OFF})",
    re.IGNORECASE,
)
"""What is switched off where it works."""
_ARTICLES = frozenset({"the", "my", "a", "an", "any"})
_STOP = frozenset(
    """it this that them any the a an issue issues problem problems error errors success luck effect change changes
    changing code help more further use using need me us you of call check line lines step steps error""".split()  # noqa: SIM905 - a list of words
)
_STAGE = re.compile(r"\b(?:zero[- _]?(?:stage)?[- _=]*|stage[- _=]*)(?P<stage>[0-3])\b", re.IGNORECASE)
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
_DEVICES = re.compile(r"\b(?P<device>cpu|cuda|mps|xpu|npu|tpu)\b", re.IGNORECASE)
_DTYPES = re.compile(r"\b(?P<dtype>fp32|float32|fp16|float16|bf16|bfloat16|fp8|float8)\b", re.IGNORECASE)
_SAME_DTYPE = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8": "fp8"}
_DIFFERS = re.compile(
    rf"\b{_WORKS}\b|\b(?:differ\w*|whereas|vs\.?|versus|compared|mismatch\w*|inconsisten\w*|not match|n't match)\b",
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
    sentences = [issue.title, *_SENTENCE.split(issue.seen)]
    pairs = [f"{sentence} {following}" for sentence, following in pairwise(sentences[1:])]
    titled = [f"{issue.title}\n{sentence}" for sentence in sentences[1:4]]
    for text in (*sentences, *pairs, *titled):
        if found := next(_sides(text), None):
            kind, works, fails = found
            is_hang = issue.is_hang and not is_crash
            quantity = Quantity.CRASH if is_crash else Quantity.HANG if is_hang else _quantity(issue.title, text)
            return Pair(kind, works, fails, quantity)
    return None


def _quantity(*texts: str) -> Quantity:
    for text in texts:
        for quantity, words in _QUANTITIES:
            if words.search(text):
                return quantity
    return Quantity.VALUE


def _part(sentence: str) -> str:
    """Return the part without which a sentence says that it works, or with which alone it fails; empty for none."""
    return next((name for pattern in (*_PART, _ONLY) if (name := _name(pattern.search(sentence)))), "")


def _name(found: re.Match[str] | None) -> str:
    """Return the name of a part, without its article; empty if its words name none."""
    words = [word for word in found["part"].split() if word.lower() not in _ARTICLES] if found else []
    name = " ".join(words).strip("`'\".,:")
    is_name = name and "`" not in name and not {word.lower() for word in name.split()} & _STOP and not name.isdigit()
    return name if is_name else ""


def _sides(text: str) -> Iterator[tuple[PairKind, str, str]]:
    """Yield the two sides of each kind that a sentence compares: what differs, what works, what fails."""
    if part := _part(text):
        yield PairKind.PART, f"without {part}", f"with {part}"
    if setting := _SET.search(text):
        name = (setting["setting"] or setting["set"]).replace("`", "")
        yield PairKind.PART, f"with {name}", f"without {name}"
    if other := _name(_OTHER.search(text) or _SAME.search(text)):
        yield PairKind.PROGRAM, f"in {other}", "here"
    if not _DIFFERS.search(text) and not (_EAGER.search(text) and _WRONG.search(text)):
        return
    if _COMPILED.search(text) and _EAGER.search(text):
        yield PairKind.COMPILED, "eager", "compiled"
    if len(stages := list(dict.fromkeys(found["stage"] for found in _STAGE.finditer(text)))) > 1:
        yield PairKind.STAGE, f"with ZeRO stage {stages[0]}", f"with ZeRO stage {stages[1]}"
    if (_ONE.search(text)) and (many := _MANY.search(text)):
        yield PairKind.RANKS, "with one process", f"with {many[0]}"
    devices = list(dict.fromkeys(found["device"].lower() for found in _DEVICES.finditer(text)))
    if len(devices) > 1 and "cpu" in devices:
        yield PairKind.DEVICE, "on cpu", f"on {next(device for device in devices if device != 'cpu')}"
    dtypes = list(
        dict.fromkeys(_SAME_DTYPE.get(name, name) for name in (m["dtype"].lower() for m in _DTYPES.finditer(text)))
    )
    if len(dtypes) > 1:
        first = "fp32" if "fp32" in dtypes else dtypes[0]
        yield PairKind.DTYPE, f"in {first}", f"in {next(one for one in dtypes if one != first)}"
