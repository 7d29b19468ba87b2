"""An index of the catalogue's signatures, so that an exception is compared with few of them.

A message can only match a signature if it contains the signature's words. Each documented text is filed under one of
its words, and an exception is compared only with the texts filed under a word of its message. Every text has probes,
too, pairs of its longest words: a piece of a log without any of them is compared with nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from repros.diagnose.match.hints import Hints, hints_of
from repros.diagnose.match.squash import squash
from repros.engine.signature import END, matched_text, normalise
from repros.model import ExpectedOutcome, Raised, Repro, Signature, Variant

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

    @cached_property
    def symptoms(self) -> tuple[tuple[str, str], ...]:
        """What may follow from the failure, with the squashed forms."""
        return _with_squashed(self.hints.symptoms)

    @property
    def parts(self) -> Iterator[str]:
        """The squashed forms of all its texts and symptoms."""
        yield from (part for _, part in (*self.texts, *self.common_texts, *self.symptoms))

    def find_text(self, squashed: str) -> SignatureMatch | None:
        """Return the match with a squashed message, whatever its class."""
        for texts, is_common in ((self.texts, False), (self.common_texts, True)):
            for text, part in texts:
                if part in squashed:
                    other = next((other for other in self.hints.other_texts if squash(other) in squashed), "")
                    return SignatureMatch(self, text, is_documented=False, is_common=is_common, other_text=other)
        return None

    def find_symptom(self, squashed: str) -> SignatureMatch | None:
        """Return the match of a symptom with a squashed message."""
        found = next((text for text, part in self.symptoms if part in squashed), None)
        return SignatureMatch(self, found, is_documented=False, is_symptom=True) if found else None

    def document(self, raised: Raised) -> str | None:
        """Return the documented text that an exception has.

        What the log has behind a message may be another writer's, so a text that ends the message may end its first
        line.
        """
        found = matched_text(raised, self.signature)
        if found or not any(text.endswith(END) for text in self.signature.match):
            return found
        return matched_text(replace(raised, message=raised.message.partition("\n")[0]), self.signature)


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
    is_symptom: bool = False
    """Whether the text is not the failure's own message, but what may follow from it."""
    is_wait: bool = False
    """Whether the text is no message, but the call below which a rank of a hang waits."""
    other_text: str = ""
    """The part of the message that shows another cause, if there is one."""


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
        self._parts = tuple({part for entry in self._entries for part in entry.parts})
        probes = {probe for entry in self._entries for text in _texts(entry) for probe in _probes(text)}
        self._pairs = {first: frozenset(p[1] for p in probes if p[0] == first and p[1:]) for first, *_ in probes}
        self._fragments = tuple(probe for probe, *second in probes if not second)

    def may_match(self, text: str) -> bool:
        """Whether a text has words without which it has no documented message; much faster than a match."""
        lower = text.casefold()
        words = set(_WORD.findall(lower))
        found = (word for word in words if word in self._pairs)
        return any(not words.isdisjoint(self._pairs[word]) for word in found) or any(
            fragment in lower for fragment in self._fragments
        )

    def find_matches(self, raised: Raised) -> Iterator[SignatureMatch]:
        """Yield the signatures that an exception matches, in the order of the catalogue."""
        if not self.may_match(raised.message or raised.name):
            return
        if "." not in raised.type:  # a notebook prints classes without their module
            known = sorted(self._by_class_name.get(raised.type, ()))
            raised = replace(raised, bases=(*raised.bases, *known))
        documented = self._places(raised.message or raised.name)
        squashed = self._squash(normalise(raised.message))
        for place, entry in enumerate(self._entries):
            if place in documented and (text := entry.document(raised)):
                is_common = text in dict(entry.common_texts)
                yield SignatureMatch(entry, text, is_common=is_common)
            elif squashed:
                text_match = entry.find_text(squashed) if has_class(raised, entry.signature) else None
                if match := text_match or entry.find_symptom(squashed):
                    yield match

    def find_texts(self, text: str) -> Iterator[SignatureMatch]:
        """Yield the signatures whose text is in a piece of a log that names no exception class."""
        normalised = normalise(text)
        squashed = self._squash(normalised)
        for entry in self._entries if squashed else ():
            match = entry.find_text(squashed) or entry.find_symptom(squashed)
            if match and not _QUOTED_IN_PROSE.search(normalised.partition(match.matched_text)[0][-_LONGEST_LEAD:]):
                yield match

    def ids_of(self, raised: Raised) -> frozenset[str]:
        """Return the ids of the repros that an exception matches."""
        return frozenset(match.entry.repro.id for match in self.find_matches(raised))

    def _squash(self, normalised: str) -> str:
        """Return the squashed form of a text that has a part of some entry; of any other, nothing."""
        squashed = squash(normalised)
        return squashed if any(part in squashed for part in self._parts) else ""

    def _places(self, message: str) -> set[int]:
        """Return the positions of the entries that the message may match."""
        words = self._by_word.keys() & set(_WORD.findall(message))
        return self._wordless.union(*(self._by_word[word] for word in words))


def _signature_entries(repros: Iterable[Repro]) -> Iterator[SignatureEntry]:
    """Yield an entry for each exception that a repro documents; a log has no message of a hang or an exit."""
    for repro in repros:
        by_signature: dict[Signature, list[Variant]] = {}
        for variant in repro.variants:
            if variant.outcome is ExpectedOutcome.FAILS and variant.signature.raises:
                by_signature.setdefault(variant.signature, []).append(variant)
        for signature, variants in by_signature.items():
            yield SignatureEntry(repro, signature, tuple(variants))


def _texts(entry: SignatureEntry) -> Iterator[str]:
    """Yield every text by which an entry is found."""
    yield from entry.signature.match
    yield from (text for text, _ in (*entry.texts, *entry.common_texts, *entry.symptoms))


@lru_cache(maxsize=4096)
def _probes(text: str) -> tuple[tuple[str, ...], ...]:
    """Return what a piece of a log with this text has: two pairs of words, of which a line's end tears one."""
    text = normalise(text)
    words = sorted({word.casefold() for word in _whole_words(text)}, key=lambda word: (-len(word), word))
    pairs = tuple(tuple(words[at : at + 2]) for at in (0, 2) if len(words) > at + 1)
    others = [word.casefold() for word in reversed(_WORD.findall(text)) if word.casefold() not in _PLACEHOLDERS]
    return pairs or ((max(others, key=len, default=""),),)  # an empty one is in every text


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
