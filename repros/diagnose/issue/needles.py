"""Words of which a text has one if a regular expression is found in it: a cheap test before a costly search."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:P<\w+>|[:=!]|<[=!])|.", re.DOTALL)
_OPTIONAL = ("?", "*", "{")
_FEWEST_LETTERS = 2


Needles = tuple[tuple[str, ...], ...]
"""Groups of texts in lower case."""


def needles_of(pattern: str) -> Needles:
    """Return groups of texts: every text with a match has one of each, whatever its case; empty if none is known.

    They are the beginnings of the alternatives of the groups at the top of the expression.
    """
    tokens = _TOKEN.findall(pattern)
    groups, depth, start = list[list[str]](), 0, 0
    for at, part in enumerate(tokens):
        if part == "|" and not depth:
            return ()
        if part.startswith("(") and not depth:
            start = at
        depth += part.startswith("(") - (part == ")")
        if part == ")" and not depth and not "".join(tokens[at + 1 : at + 2]).startswith(_OPTIONAL):
            groups.append(tokens[start : at + 1])
    return tuple(words for group in groups if group[0] == "(?:" and (words := _beginnings(group[1:-1])))


def has_needles(needles: Needles, lower: str) -> bool:
    """Return whether a text in lower case has one of each group."""
    return all(any(word in lower for word in words) for words in needles)


def _beginnings(tokens: list[str]) -> tuple[str, ...]:
    """Return the literal beginning of each alternative; empty if one has none of some length."""
    words, text, depth, is_open = list[str](), "", 0, True
    for part in [*tokens, "|"]:
        if part == "|" and not depth:
            words.append(text.lower())
            text, is_open = "", True
            continue
        depth += part.startswith("(") - (part == ")")
        if part in _OPTIONAL:
            text = text[:-1] if is_open else text
        elif is_open and part.isascii() and (len(part) == 1 and (part.isalnum() or part in " _-'")):
            text += part
            continue
        is_open = False
    return tuple(words) if min(map(len, words)) >= _FEWEST_LETTERS else ()
