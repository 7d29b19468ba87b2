"""The letters of a message alone, so that one that was pasted, quoted, torn or escaped is still found."""

from __future__ import annotations

import re

_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))
_DROPPED = re.compile(r"\\[nrt]|[\s*`\"'\\<>|\u2502\u2018\u2019\u201c\u201d\u00ab\u00bb\u200b\u2060\ufeff]+")
"""Blank space, also as JSON writes it, quotes of any kind, the marks of Markdown, and the sides of a box."""


def squash(text: str) -> str:
    """Return a text without blank space, quotes and Markdown, in one case."""
    if "&" in text:
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[0]], text)
    return _DROPPED.sub("", text).casefold()
