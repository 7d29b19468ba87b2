"""The documented failures whose messages share the rarest words with a message: a direction to look, no match."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from repros.model import ExpectedOutcome, Repro

_WORD = re.compile(r"[A-Za-z_]{4,}")
_MOST = 2
_FEWEST_WORDS = 3
_LEAST_SHARE = 0.5
"""Share of a documented message's weight that a message has to have."""
_PLACEHOLDERS = {"device", "rank", "path", "host", "number", "tensor", "cuda", "address"}


@dataclass(frozen=True)
class NearFailure:
    """A documented failure with similar words."""

    id: str
    title: str
    words: tuple[str, ...]
    """The shared words, the rarest first."""


class WordIndex:
    """The words of all documented messages, weighted by their rarity."""

    def __init__(self, repros: Iterable[Repro]) -> None:
        """Index the texts of the exceptions that the repros document."""
        self._texts = [
            (repro.id, repro.title, _words(text))
            for repro in repros
            for text in dict.fromkeys(
                text
                for variant in repro.variants
                if variant.outcome is ExpectedOutcome.FAILS and variant.signature.raises
                for text in variant.signature.match
            )
        ]
        frequency = Counter(word for _, _, words in self._texts for word in words)
        self._weights = {word: math.log1p(len(self._texts) / number) for word, number in frequency.items()}

    def find(self, message: str) -> tuple[NearFailure, ...]:
        """Return the failures of which a message has most of the words, by weight; the nearest first."""
        words = _words(message)
        best: dict[str, tuple[float, NearFailure]] = {}
        for id_, title, text in self._texts:
            shared = sorted(words & text, key=lambda word: (-self._weights[word], word))
            share = self._weight(shared) / (self._weight(text) or 1)
            if len(shared) >= _FEWEST_WORDS and share >= _LEAST_SHARE and share > best.get(id_, (0,))[0]:
                best[id_] = share, NearFailure(id_, title, tuple(shared))
        return tuple(near for _, near in sorted(best.values(), key=lambda item: (-item[0], item[1].id))[:_MOST])

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self._weights[word] for word in words)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _PLACEHOLDERS
