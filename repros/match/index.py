"""An index of the catalogue's signatures, so that an exception is compared with few of them.

A message can only match a signature if it contains the signature's words. Each documented text is filed under one of
its words, and an exception is compared only with the texts filed under a word of its message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from repros.engine.signature import END, matched_text, normalise
from repros.match.hints import Hints, hints_of
from repros.match.squash import squash
from repros.model import Outcome, Raised, Repro, Signature, Variant

_WORD = re.compile(r"[A-Za-z]{3,}")
_QUOTED_IN_PROSE = re.compile(r"\w+ \w+ \w+[^\"\u201c`]{0,200}[\"\u201c`]$")
"""What is before a message that a sentence only mentions."""
_LONGEST_LEAD = 300
"""Characters before a message that are searched for it, so that the cost stays linear."""
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
}
"""Words that normalising inserts or removes, so that a matching message may lack them."""


@dataclass(frozen=True)
class SignatureEntry:
    """One signature of one repro, and the variants that show it."""

    repro: Repro
    signature: Signature
    variants: tuple[Variant, ...]

    @cached_property
    def hints(self) -> Hints:
        """What else tells the repro in a pasted log."""
        return hints_of(self.repro)

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The documented texts and those that people paste, with their squashed forms; the longest first."""
        own = (text for text in self.signature.match if not text.endswith(END))  # what follows may be lost in a paste
        return _with_squashed((*own, *self.hints.texts))

    @cached_property
    def common_texts(self) -> tuple[tuple[str, str], ...]:
        """The texts that count only with a call or a word, with their squashed forms."""
        return _with_squashed(self.hints.common_texts)

    def find_text(self, squashed: str) -> SignatureMatch | None:
        """Return the match with a squashed message, whatever its class."""
        if any(squash(text) in squashed for text in self.hints.other_texts):
            return None
        for texts, is_common in ((self.texts, False), (self.common_texts, True)):
            for text, part in texts:
                if part in squashed:
                    return SignatureMatch(self, text, is_documented=False, is_common=is_common)
        return None


def _with_squashed(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    pairs = ((normalise(text), squash(normalise(text))) for text in texts)
    long = ((text, part) for text, part in pairs if len(_WORD.findall(text)) > 1)
    return tuple(sorted(long, key=lambda pair: -len(pair[1])))


@dataclass(frozen=True)
class SignatureMatch:
    """An exception's match with a signature."""

    entry: SignatureEntry
    matched_text: str
    """The documented text, normalised, that the exception's message contains."""
    is_documented: bool = True
    """Whether the text is one of the signature's own, and not only one of `Hints.texts`."""
    is_common: bool = False
    """Whether the text counts only with a call on the stack or a word of the log."""


class SignatureIndex:
    """The signatures of all exceptions that the repros document."""

    def __init__(self, repros: Iterable[Repro]) -> None:
        """File each documented text under the rarest of its whole words, or as wordless if it has none."""
        self._entries = tuple(_signature_entries(repros))
        self._by_word: dict[str, set[int]] = {}
        self._wordless: set[int] = set()
        self._by_class_name: dict[str, set[str]] = {}
        texts = [
            (place, words) for place, entry in enumerate(self._entries) for words in _documented_words(entry.signature)
        ]
        frequency = Counter(word for _, words in texts for word in words)
        for place, words in texts:
            if words:
                rarest = min(words, key=lambda word: (frequency[word], -len(word)))
                self._by_word.setdefault(rarest, set()).add(place)
            else:
                self._wordless.add(place)
        for entry in self._entries:
            raises = entry.signature.raises or ""
            self._by_class_name.setdefault(_class_name(raises), set()).add(raises)

    def find_matches(self, raised: Raised) -> Iterator[SignatureMatch]:
        """Yield the signatures that an exception matches, in the order of the catalogue."""
        if not any(_class_name(name) in self._by_class_name for name in (raised.type, *raised.bases)):
            return
        if "." not in raised.type:  # a notebook prints classes without their module
            known = sorted(self._by_class_name.get(raised.type, ()))
            raised = replace(raised, bases=(*raised.bases, *known))
        documented = self._places(raised.message or raised.name)
        squashed = squash(normalise(raised.message))
        for place, entry in enumerate(self._entries):
            if place in documented and (text := matched_text(raised, entry.signature)):
                is_common = text in dict(entry.common_texts)
                yield SignatureMatch(entry, text, is_common=is_common)
            elif squashed and has_class(raised, entry.signature) and (match := entry.find_text(squashed)):
                yield match

    def find_texts(self, text: str) -> Iterator[SignatureMatch]:
        """Yield the signatures whose text is in a piece of a log that names no exception class."""
        normalised = normalise(text)
        squashed = squash(normalised)
        for entry in self._entries:
            match = entry.find_text(squashed)
            if match and not _QUOTED_IN_PROSE.search(normalised.partition(match.matched_text)[0][-_LONGEST_LEAD:]):
                yield match

    def _places(self, message: str) -> set[int]:
        """Return the positions of the entries that the message may match."""
        words = self._by_word.keys() & set(_WORD.findall(message))
        return self._wordless.union(*(self._by_word[word] for word in words))


def _signature_entries(repros: Iterable[Repro]) -> Iterator[SignatureEntry]:
    """Yield an entry for each exception that a repro documents; a log has no message of a hang or an exit."""
    for repro in repros:
        by_signature: dict[Signature, list[Variant]] = {}
        for variant in repro.variants:
            if variant.outcome is Outcome.FAILS and variant.signature.raises:
                by_signature.setdefault(variant.signature, []).append(variant)
        for signature, variants in by_signature.items():
            yield SignatureEntry(repro, signature, tuple(variants))


def has_class(raised: Raised, signature: Signature) -> bool:
    """Whether an exception is of the class that a signature names, or of a class derived from it."""
    wanted = signature.raises or ""
    return any(name == wanted or name.endswith("." + wanted) for name in (raised.type, *raised.bases))


def _class_name(qualified_name: str) -> str:
    return qualified_name.rpartition(".")[2]


def _documented_words(signature: Signature) -> Iterator[list[str]]:
    """Yield the whole words of each text that a signature documents."""
    for text in signature.match:
        yield _whole_words(normalise(text))


def _whole_words(text: str) -> list[str]:
    """Return the words that a matching message must contain whole.

    The first and the last word are left out: the text may begin or end inside a word of the message.
    """
    return [
        word[0]
        for word in _WORD.finditer(text)
        if word.start() > 0 and word.end() < len(text) and word[0].lower() not in _PLACEHOLDERS
    ]
