"""The two sides that a report names itself: loaders, functions, settings, checkpoints, or anything behind `with`."""

from __future__ import annotations

import re
from typing import NamedTuple

_WITH = r"\b(?:with|using|on|from|loading|by|when (?:i |we )?us(?:e|ing))"
_SIDE = r"(?P<side>`[^`\n]{2,70}`|(?:[^\s,;:.`]|\.(?=\S))(?:[^,;:\n.]|\.(?=\S)){0,50}?)"
_ITSELF = (
    r"(?: itself| instead| alone| only)?[,:]? (?:(?:it|this|that|everything|all|training|the (?:\w+ ){0,2}\w+) )?"
    r"(?:still |then |also )?"
)
_GOOD = re.compile(
    rf"{_WITH} {_SIDE}{_ITSELF}(?:works?\b|worked\b|(?:is|was|runs?|trains?) (?:fine|ok(?:ay)?|stable|normal(?:ly)?"
    r"|right|correct(?:ly)?|well|as expected)\b|(?:does|do|did)(?:n't| not) (?:occur|happen|crash|hang|fail)\b"
    r"|there(?:'s| is| are| was) no (?:such )?(?:problems?|issues?|errors?|leaks?)\b)",
    re.IGNORECASE,
)
_BAD = re.compile(
    rf"{_WITH} {_SIDE}{_ITSELF}(?:fails?\b|crash(?:es|ed)\b|hangs?\b|errors?\b|raises?\b"
    r"|(?:does|did)(?:n't| not) work\b|(?:is|gets|becomes) (?:wrong|nan|worse|slow\w*|higher|lower)\b"
    r"|(?:grows|leaks)\b)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\bwith `?(?P<one>[\w.-]+(?: [\w.-]+)?)`? and with `?(?P<other>[\w.-]+(?: [\w.-]+)?)`?\b[^.\n]{0,40}"
    r"\b(?:worse|wrong|nan|slow\w*|higher|lower)\b[^.\n]{0,30}\bwith `?(?P<bad>[\w.-]+)",
    re.IGNORECASE,
)
"""Two sides of which the worse one is named again."""
_VAGUE = re.compile(
    r"\b(?:it|this|that|them|these|those|which|what|everything|version|release|older|newer|previous|latest|before|gpus?"
    r"|cards?|ranks?|cpu|cuda|nodes?|fp\d\d|bf16|float\d\d|bfloat16|steps?|epochs?|same|simple|small\w*|few\w*|no|not|help"
    r"|nothing|nobody|none|never|neither|hardly|barely|rarely|seldom)\b"
    r"|\d\.\d|n't\b",
    re.IGNORECASE,
)
"""Words of sides that other kinds know, or that name nothing."""
_FUNCTION = re.compile(r"`?(?:[A-Za-z_]\w*\.)+[a-z_]\w*(?:\(\))?`?")
_SETTING = re.compile(r"`?(?:[A-Za-z_]\w*\.)+\w+ ?= ?\S+?`?")
_CHECKPOINT = re.compile(r"checkpoint(?!ing)|ckpt|load_step", re.IGNORECASE)


class NamedSides(NamedTuple):
    """Two sides."""

    kind: str
    """The value of a kind of pair."""
    works: str
    fails: str


def find_named(text: str, whole: str) -> NamedSides | None:
    """Return the sides that a sentence names; None if it names none.

    Args:
        text: the sentence.
        whole: the title and the prose of the issue, which may name the function that fails.
    """
    if both := _BOTH.search(text):
        names = [both["one"], both["other"]]
        bad = next((name for name in names if both["bad"].lower().strip(".") in name.lower()), "")
        if bad:
            works = next(name for name in names if name != bad)
            return NamedSides("stage" if "zero" in bad.lower() else "part", f"with {works}", f"with {bad}")
    good = _side(_GOOD, text)
    if not good:
        return None
    bad = _side(_BAD, text)
    if _FUNCTION.fullmatch(good):
        last = good.strip("`()").rpartition(".")[2]
        others = [name.strip("`()") for name in _FUNCTION.findall(whole)]
        bad = next((name for name in others if name.endswith(last) and name != good.strip("`()")), bad)
        return NamedSides("function", good.strip("`()"), bad) if bad else None
    kind = _kind(good) or ("part" if bad else "")
    fails = f"with {bad.replace('`', '')}" if bad else "without it"
    return NamedSides(kind, f"with {good.replace('`', '')}", fails) if kind else None


def _side(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    side = found["side"].strip() if found else ""
    return "" if _VAGUE.search(side) else side


def _kind(side: str) -> str:
    if re.search("loader|fetch", side, re.IGNORECASE):
        return "loader"
    if _CHECKPOINT.search(side):
        return "checkpoint"
    return "setting" if _SETTING.fullmatch(side) else ""
