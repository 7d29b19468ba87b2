"""What proves or refutes a supposed cause: one check, with the names of the report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class ProofKind(StrEnum):
    """What would prove a supposed cause."""

    QUOTED_LINE = "quoted line"
    """A line of a library that the report quotes is in the installed release."""
    OPTION = "option"
    """It comes and goes with one option."""
    RANKS = "ranks"
    """Ranks have other names, gradients or values."""
    DATA = "data"
    """The data or their labels are wrong."""
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
class Supposed:
    """A supposed cause, as far as its check needs it."""

    sentence: str
    around: str
    """The sentence with its neighbours."""
    place: str = ""
    """The file, with its line if the report names it."""

    @property
    def option(self) -> tuple[str, str] | None:
        """The option that the report takes for the cause, and another value of it; None if it names none."""
        found = _OPTION.search(self.around)
        return (found["name"], _OTHERS.get(found["value"].lower(), "another value")) if found else None

    @property
    def quoted(self) -> str:
        """The line of code that the report quotes as wrong; empty without one."""
        return next((line for line in _QUOTED.findall(self.around) if re.search(r"[=(]", line)), "")

    @property
    def values(self) -> list[str]:
        """The names of values in the sentence: no calls, files, classes, options or sizes."""
        names = _VALUE.findall(_SIZE.sub("", self.sentence))
        return list(dict.fromkeys(names))[:2]


_QUOTED = re.compile(r"`([^`\n]{12,160})`")
_OPTION = re.compile(
    r"\b(?:by|because of|since|due to|when|if|caus\w+|setting|of)\W{1,3}(?P<name>[a-z]\w*_\w+|[a-z]{4,})"
    r" ?= ?[\"']?(?P<value>True|False|[01])\b",
    re.IGNORECASE,
)
"""An option behind a word that says what it does."""
_OTHERS = {"true": "False", "false": "True"}
_VALUE = re.compile(r"(?<![\w./=-])([a-z]+(?:_[a-z0-9]+)+)(?![\w/(=]|\.py|\.\w|`? ?\(| ?=)")
_SIZE = re.compile(r"\[[^\]\n]*\]|\b(?:batch_size|seq_len|num_\w+|max_\w+)\b")
"""Shapes and numbers, which have no shape."""
_IS_LINE = re.compile(r"\b(?:lines?|replac\w+|should be|instead of|chang\w+|typo|mend\w*|fix\w*)\b", re.IGNORECASE)
_OF_RANKS = re.compile(
    r"\b(?:differ\w*|others?|some|none|unequal\w*)\b[^.\n]{0,60}\b(?:on|across|between|among|over) (?:\w+ ){0,2}"
    r"(?:ranks?|devices|gpus|processes)\b",
    re.IGNORECASE,
)
_DATA = r"(?:data|data ?set|samples?|vectors?|embeddings?|labels?|features?|memmap|masks?|images?|inputs?)"
_OF_DATA = re.compile(
    rf"\b{_DATA}\b[^.\n]{{0,60}}\b(?:abnormal|corrupt\w*|broken|weird|strange|invalid|garbage)\b"
    rf"|\b(?:corrupt\w*|broken|bad|invalid|abnormal) {_DATA}\b",
    re.IGNORECASE,
)
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
_PACKAGE = re.compile(
    r"\b(torch|transformers|trl|peft|accelerate|deepspeed|datasets|lightning|pytorch_lightning)\b[./]"
)


def proof_of(supposed: Supposed) -> ProofKind:
    """Return what would prove a supposed cause."""
    sentence, around = supposed.sentence, supposed.around
    kinds: Mapping[ProofKind, Callable[[], object]] = {
        ProofKind.QUOTED_LINE: lambda: supposed.quoted and _IS_LINE.search(around) and _PACKAGE.search(around),
        ProofKind.UNDONE: lambda: _UNDONE.search(around),
        ProofKind.NOT_GIVEN: lambda: _NOT_GIVEN.search(sentence),
        ProofKind.OPTION: lambda: supposed.option,
        ProofKind.NOT_SYNCHRONISED: lambda: _SYNCHRONISED.search(sentence),
        ProofKind.RANKS: lambda: is_of_ranks(sentence),
        ProofKind.NOT_REACHED: lambda: _NOT_REACHED.search(sentence),
        ProofKind.ORDER: lambda: _ORDER.search(sentence),
        ProofKind.DATA: lambda: is_of_data(sentence),
    }
    return next((kind for kind, holds in kinds.items() if holds()), ProofKind.VALUE)


def is_of_ranks(sentence: str) -> bool:
    """Return whether a sentence takes a difference between ranks for the cause."""
    return bool(_OF_RANKS.search(sentence))


def is_of_data(sentence: str) -> bool:
    """Return whether a sentence takes the data for the cause."""
    return bool(_OF_DATA.search(sentence))


def check_of_proof(kind: ProofKind, supposed: Supposed) -> str:
    """Return the lines that prove a supposed cause, or show that it is not the cause."""
    place, names, (option, other) = supposed.place or "that place", supposed.values, supposed.option or ("", "")
    found = _PACKAGE.search(supposed.around)
    package = found[1] if found else ""
    shown = f"for n, v in {{{', '.join(f'{name!r}: {name}' for name in names)}}}.items()"
    return {
        ProofKind.QUOTED_LINE: f"grep -rnF -e {shlex.quote(supposed.quoted)} $(python -c 'import {package} as m;"
        " print(m.__path__[0])')  # a hit: the installed release has this line; none: it is mended, or elsewhere",
        ProofKind.OPTION: f"one run with {option}={other} and nothing else changed: gone: proved; the same: not it",
        ProofKind.RANKS: f"x = [None] * dist.get_world_size(); dist.all_gather_object(x, {_of_rank(supposed)});"
        " print(x)  # on all ranks at that step: other entries: proved; equal ones: not it",
        ProofKind.DATA: f"x = np.asarray({names[0] if names else 'data'}[:1000]); print(x.dtype, x.shape, "
        "np.isfinite(x).all(), np.linalg.norm(x.reshape(len(x), -1).astype('f8'), axis=1)[:5])  # another format or "
        "shape, a False, norms of 0 or 1e30: proved; ordinary: not it",
        ProofKind.UNDONE: "this change alone, then undone, with the same seed and batch: the failure goes and comes"
        " with it",
        ProofKind.NOT_GIVEN: "print the names that arrive in the called function (its arguments, batch.keys()): not"
        " among them: proved",
        ProofKind.NOT_SYNCHRONISED: "print(rank, step, sum(p.double().sum().item() for p in model.parameters()))  #"
        " behind two steps (or the value in question): another number on each rank: proved",
        ProofKind.NOT_REACHED: f"print(rank, step, {names[0] if names else 'value'}) in {place} in front of what is "
        "left out and behind it: no second line, or an equal value: proved",
        ProofKind.ORDER: "print a line with the step in each of both calls: their order in the log proves it",
        ProofKind.VALUE: f"print([(n, getattr(v, 'dtype', v), getattr(v, 'shape', '')) {shown}]) in front of {place} "
        "and behind it: right before and wrong behind: proved; wrong before: the cause is earlier"
        if names
        else f"print(v.dtype, v.shape, v.float().sum()) in front of {place} and behind it: right before and wrong "
        "behind: proved; wrong before: the cause is earlier",
    }[kind]


def _of_rank(supposed: Supposed) -> str:
    """Return what is to be compared between ranks."""
    text = supposed.sentence.lower()
    if re.search(r"\b(?:metrics?|keys?|log(?:s|ged|ging)?)\b", text):
        return "sorted(trainer.callback_metrics)"
    if re.search(r"\b(?:gradients?|unused|used|experts?|parameters?|modules?|branch\w*)\b", text):
        return "sorted(n for n, p in model.named_parameters() if p.grad is None)"
    return supposed.values[0] if supposed.values else "value"
