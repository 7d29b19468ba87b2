"""The catalogue's signatures, laid out so that an exception is held against few of them.

A wording can only stand in a message that has its words. So each wording is filed under one of its words, and only the
wordings whose word an exception has are looked for, however many there are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from repros.engine.signature import matched_text, normalise
from repros.model import Outcome, Raised, Repro, Signature, Variant

_WORD = re.compile(r"[A-Za-z]{3,}")
_PLACEHOLDERS = {
    "address",
    "device",
    "rank",
    "path",
    "host",
    "number",
    "tensor",
    "wrapper",
    "aten",
    "cuda",
    "sim",
    "privateuseone",
}
"""Words that normalising puts in or takes out, so that a message need not have them before."""


@dataclass(frozen=True)
class Entry:
    """One signature of one repro, and the variants that show it."""

    repro: Repro
    signature: Signature
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class SignatureMatch:
    """An exception that matches an entry's signature."""

    entry: Entry
    matched_text: str
    """The documented words that its message has, normalised."""


class SignatureIndex:
    """Every exception that the repros document."""

    def __init__(self, repros: Iterable[Repro]) -> None:
        """File each wording under the rarest of its whole words."""
        self._entries = tuple(_entries(repros))
        self._by_word: dict[str, set[int]] = {}
        self._wordless: set[int] = set()
        self._classes: dict[str, set[str]] = {}
        wordings = [[_whole_words(normalise(one)) for one in entry.signature.match] for entry in self._entries]
        often = Counter(word for words in wordings for one in words for word in one)
        for place, entry in enumerate(self._entries):
            raises = entry.signature.raises or ""
            self._classes.setdefault(raises.rpartition(".")[2], set()).add(raises)
            for words in wordings[place]:
                word = min(words, key=lambda word: (often[word], -len(word)), default=None)
                (self._by_word.setdefault(word, set()) if word else self._wordless).add(place)

    def matched(self, raised: Raised) -> Iterator[SignatureMatch]:
        """Yield what an exception matches, in the order of the catalogue."""
        classes = (raised.type, *raised.bases)
        if not any(name.rpartition(".")[2] in self._classes for name in classes):
            return
        if "." not in raised.type:  # a notebook names classes without their module
            raised = replace(raised, bases=(*raised.bases, *sorted(self._classes.get(raised.type, ()))))
        places = set(self._wordless)
        for word in self._by_word.keys() & set(_WORD.findall(raised.message or raised.name)):
            places |= self._by_word[word]
        for place in sorted(places):
            if words := matched_text(raised, self._entries[place].signature):
                yield SignatureMatch(self._entries[place], words)


def _entries(repros: Iterable[Repro]) -> Iterator[Entry]:
    """Yield an entry for each exception that a repro documents; a hang or an exit leaves nothing in a log to match."""
    for repro in repros:
        by_signature: dict[Signature, list[Variant]] = {}
        for variant in repro.variants:
            if variant.outcome is Outcome.FAILS and variant.signature.raises:
                by_signature.setdefault(variant.signature, []).append(variant)
        for signature, variants in by_signature.items():
            yield Entry(repro, signature, tuple(variants))


def _whole_words(words: str) -> list[str]:
    """Return the words that are whole wherever the wording stands, which its first and its last need not be."""
    return [
        word[0]
        for word in _WORD.finditer(words)
        if word.start() > 0 and word.end() < len(words) and word[0].lower() not in _PLACEHOLDERS
    ]
