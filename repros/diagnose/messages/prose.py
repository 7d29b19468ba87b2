"""The message families that an issue's own sentences report, where it quotes no error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from repros.diagnose.messages.family import MessageFamily

_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_LONGEST = 400
"""Characters of a sentence; longer ones are data."""
_FAILS = re.compile(
    r"error|exception|assert|fail|crash|rais(?:e|ing)|throw|can(?:no|')t|unable|refuse|broke|报错|错误|异常",
    re.IGNORECASE,
)
"""Words of a sentence that reports a failure."""
_DENIES = re.compile(
    r"\b(?:no|without|any|avoids?|prevents?|fix(?:es|ed)?|resolved?|solved?) (?:\w+ ){0,2}(?:errors?|exceptions?"
    r"|failures?|issues?|crash\w*)\b|\b(?:request|proposal|fixed|resolved|solved)\b",
    re.IGNORECASE,
)
"""Words of a sentence whose failure is not the one that it reports."""


def find_reported(title: str, prose: str, families: Sequence[MessageFamily]) -> tuple[MessageFamily, str] | None:
    """Return the family that an issue reports in words, and the sentence; None if there is none.

    A title reports what its words say; a sentence of the prose has to say also that something fails.

    Args:
        title: the issue's title.
        prose: its other words.
        families: the message families.
    """
    sentences = [title, *(text for text in _SENTENCE.split(prose) if _FAILS.search(text))]
    return next(_reports(sentences, families), None)


def _reports(sentences: Sequence[str], families: Sequence[MessageFamily]) -> Iterator[tuple[MessageFamily, str]]:
    for sentence in sentences:
        if len(sentence) <= _LONGEST and not _DENIES.search(sentence):
            lower = sentence.lower().replace("\u2019", "'")
            yield from ((family, sentence.strip()) for family in families if family.is_reported(lower))
