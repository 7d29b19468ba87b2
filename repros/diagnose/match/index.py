"""An index of the catalogue's signatures, so that an exception is compared with few of them.

A message matches a signature only if it contains the signature's words. Each documented text is indexed by one of its
words, and an exception is compared only with the texts indexed by a word of its message. In addition, each text has
probes, pairs of its longest words: a block of a log without any probe is not compared at all.
"""

from __future__ import annotations

import pickle
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import Any

from repros.diagnose.match.hints import Hints
from repros.engine.signature import END, matched_text, normalise
from repros.model import ExpectedOutcome, Raised, Repro, Signature, Variant

_WORD = re.compile(r"[A-Za-z]{3,}")
_QUOTED_IN_PROSE = re.compile(r"\w+ \w+ \w+[^\"\u201c`]{0,200}[\"\u201c`]$")
"""The text before a message that a sentence only mentions."""
_LONGEST_LEAD = 300
"""Characters before a message that are searched for such a text; a limit keeps the cost linear."""
_PLACEHOLDERS = {"address", "device", "rank", "path", "host", "number", "tensor", "wrapper", "aten", "cuda", "sim"}
"""Words that normalising inserts or removes, so that a matching message may lack them."""
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))
_DROPPED = re.compile(r"\\[nrt]|[\s*`\"'\\<>|\u2502\u2018\u2019\u201c\u201d\u00ab\u00bb\u200b\u2060\ufeff]+")
"""Blank space, also as JSON writes it, quotes of any kind, Markdown's marks, and the sides of a box."""


def squash(text: str) -> str:
    """Return a text without blank space, quotes and Markdown, in lower case.

    A message that was pasted, quoted, torn or escaped has the same squashed form.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[0]], text)
    return _DROPPED.sub("", text).casefold()


@dataclass(frozen=True)
class SignatureEntry:
    """One signature of one repro, and the variants that document it."""

    repro: Repro
    signature: Signature
    variants: tuple[Variant, ...]

    @cached_property
    def hints(self) -> Hints:
        """The repro's hints."""
        from repros.diagnose.match.hint_files import hints_of  # noqa: PLC0415 - kept entries have their hints

        return hints_of(self.repro)

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The documented texts and those of the hints, with their squashed forms; the longest first."""
        own = (text for text in self.signature.match if not text.endswith(END))  # a paste may lose the end
        return _with_squashed((*own, *self.hints.texts))

    @cached_property
    def common_texts(self) -> tuple[tuple[str, str], ...]:
        """The texts that need a call or a word as support, with their squashed forms."""
        return _with_squashed(self.hints.common_texts)

    @cached_property
    def symptoms(self) -> tuple[tuple[str, str], ...]:
        """The messages that accompany the failure, with their squashed forms."""
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
                    other = self.find_other_text(squashed)
                    return SignatureMatch(self, text, is_documented=False, is_common=is_common, other_text=other)
        return None

    def find_other_text(self, squashed: str) -> str:
        """Return the part of a squashed message that shows another cause; empty if there is none."""
        return next((other for other in self.hints.other_texts if squash(other) in squashed), "")

    def find_symptom(self, squashed: str) -> SignatureMatch | None:
        """Return the match of a symptom with a squashed message."""
        symptom = next((text for text, part in self.symptoms if part in squashed), None)
        return SignatureMatch(self, symptom, is_documented=False, is_symptom=True) if symptom else None

    def find_documented(self, raised: Raised) -> str | None:
        """Return the documented text in an exception's message.

        The lines after a message may be another writer's, so a text that must end the message may end its first line.
        """
        text = matched_text(raised, self.signature)
        if text or not any(own.endswith(END) for own in self.signature.match):
            return text
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
    """Whether the text is one of the signature's own, not one of `Hints.texts`."""
    is_common: bool = False
    """Whether the text needs a call on the stack or a word of the log as support."""
    is_symptom: bool = False
    """Whether the text is not the failure's own message, but one that accompanies it."""
    is_wait: bool = False
    """Whether the text is the call in which a rank of a hang waits, not a message."""
    other_text: str = ""
    """The part of the message that shows another cause, if any."""


class SignatureIndex:
    """The signatures of all exceptions that the repros document.

    A pickled index keeps the entries of each repro as bytes, of which only those are read that a log needs.
    """

    def __init__(self, repros: Iterable[Repro]) -> None:
        """Index each documented text by the rarest of its whole words, or as wordless if it has none."""
        catalogue = tuple(repros)
        self.is_empty = not catalogue
        self.packages = frozenset[str]().union(*(repro.named_packages for repro in catalogue))
        """Canonical names of all packages that the repros name."""
        self._entries: dict[int, SignatureEntry] = dict(enumerate(_signature_entries(catalogue)))
        self._by_word: dict[str, set[int]] = {}
        self._wordless: set[int] = set()
        self._by_class_name: dict[str, set[str]] = {}
        texts = [
            (number, words) for number, entry in self._entries.items() for words in _documented_words(entry.signature)
        ]
        frequency = Counter(word for _, words in texts for word in words)
        for number, words in texts:
            if words:
                rarest = min(words, key=lambda word: (frequency[word], -len(word)))
                self._by_word.setdefault(rarest, set()).add(number)
            else:
                self._wordless.add(number)
        for entry in self._entries.values():
            raises = entry.signature.raises or ""
            self._by_class_name.setdefault(_class_name(raises), set()).add(raises)
        self._parts = PartIndex((part, number) for number, entry in self._entries.items() for part in entry.parts)
        probes = {probe for entry in self._entries.values() for text in _texts(entry) for probe in _probes(text)}
        self._pairs = {first: frozenset(p[1] for p in probes if p[0] == first and p[1:]) for first, *_ in probes}
        self._fragments = tuple(probe for probe, *second in probes if not second)

    def __getstate__(self) -> dict[str, Any]:
        """Return the index with the entries of each repro as bytes."""
        groups = [[*group] for _, group in groupby(self._entries.values(), key=lambda entry: entry.repro.id)]
        firsts = accumulate(map(len, groups[:-1]), initial=0)
        kept = [(first, pickle.dumps(group, 5)) for first, group in zip(firsts, groups, strict=bool(groups))]
        return {**vars(self), "_entries": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of another index; its entries are read when they are needed."""
        vars(self).update(state)
        self._entries = _KeptEntries(state["_entries"])

    def may_match(self, text: str) -> bool:
        """Whether a text has a probe of a documented text; much faster than a match."""
        lower = text.casefold()
        words = set(_WORD.findall(lower))
        firsts = (word for word in words if word in self._pairs)
        return any(not words.isdisjoint(self._pairs[word]) for word in firsts) or any(
            fragment in lower for fragment in self._fragments
        )

    def find_matches(self, raised: Raised) -> Iterator[SignatureMatch]:
        """Yield the signatures that an exception matches, in the order of the catalogue."""
        if not self.may_match(raised.message or raised.name):
            return
        if "." not in raised.type:  # a notebook prints classes without their module
            known = sorted(self._by_class_name.get(raised.type, ()))
            raised = replace(raised, bases=(*raised.bases, *known))
        documented = self._numbers(raised.message or raised.name)
        squashed = squash(normalise(raised.message))
        pasted = self._parts.numbers_in(squashed)
        for number in sorted(documented | pasted):
            entry = self._entries[number]
            if number in documented and (text := entry.find_documented(raised)):
                is_common = text in dict(entry.common_texts)
                other = entry.find_other_text(squashed) if entry.hints.common_message else ""
                yield SignatureMatch(entry, text, is_common=is_common, other_text=other)
            elif number in pasted:
                text_match = entry.find_text(squashed) if has_class(raised, entry.signature) else None
                if match := text_match or entry.find_symptom(squashed):
                    yield match

    def find_texts(self, text: str) -> Iterator[SignatureMatch]:
        """Yield the signatures whose text is in a block of a log without an exception class."""
        normalised = normalise(text)
        squashed = squash(normalised)
        for number in sorted(self._parts.numbers_in(squashed)):
            entry = self._entries[number]
            match = entry.find_text(squashed) or entry.find_symptom(squashed)
            if match and not _QUOTED_IN_PROSE.search(normalised.partition(match.matched_text)[0][-_LONGEST_LEAD:]):
                yield match

    def ids_of(self, raised: Raised) -> frozenset[str]:
        """Return the ids of the repros that an exception matches."""
        return frozenset(match.entry.repro.id for match in self.find_matches(raised))

    def _numbers(self, message: str) -> set[int]:
        """Return the numbers of the entries that the message may match."""
        words = self._by_word.keys() & set(_WORD.findall(message))
        return self._wordless.union(*(self._by_word[word] for word in words))


class PartIndex:
    """The numbers of texts by a few letters of each, so that few texts are searched for.

    A text is read at each fourth letter only: each part is found by four sequences of letters that follow each other,
    of which one begins there.
    """

    def __init__(self, parts: Iterable[tuple[str, int]]) -> None:
        """Index each part by its rarest letters."""
        self._numbers: dict[str, set[int]] = {}
        for part, number in parts:
            self._numbers.setdefault(part, set()).add(number)
        frequency = Counter(letters for part in self._numbers for letters in set(_letters(part)))
        self._by_letters: dict[str, list[str]] = {}
        self._short: list[str] = []
        for part in self._numbers:
            runs = list(zip(*(_letters(part)[first:] for first in range(_STEP)), strict=False))
            for letters in min(runs, key=lambda run: sum(map(frequency.__getitem__, run)), default=()):
                self._by_letters.setdefault(letters, []).append(part)
            self._short += [part] if not runs else []

    def numbers_in(self, text: str) -> set[int]:
        """Return the numbers of the parts that a text contains."""
        known = self._by_letters.keys() & _letters(text, _STEP)
        parts = {part for letters in known for part in self._by_letters[letters]}.union(self._short)
        return set[int]().union(*(self._numbers[part] for part in parts if part in text))


_LETTERS, _STEP = 8, 4


def _letters(text: str, step: int = 1) -> list[str]:
    """Return the sequences of eight letters that begin at each letter, or at each one of several."""
    return [text[at : at + _LETTERS] for at in range(0, len(text) - _LETTERS + 1, step)]


class _KeptEntries(dict[int, SignatureEntry]):
    """The entries of a pickled index by number, which are read when they are needed."""

    def __init__(self, kept: Sequence[tuple[int, bytes]]) -> None:
        super().__init__()
        self._kept = kept

    def __missing__(self, number: int) -> SignatureEntry:
        first, blob = self._kept[bisect_right(self._kept, number, key=lambda group: group[0]) - 1]
        # All entries of a repro at once, so that they share it; the index is from the user's own cache.
        self.update(enumerate(pickle.loads(blob), first))  # noqa: S301
        return self[number]


def _signature_entries(repros: Iterable[Repro]) -> Iterator[SignatureEntry]:
    """Yield an entry for each exception that a repro documents; hangs and exits have no message."""
    for repro in repros:
        by_signature: dict[Signature, list[Variant]] = {}
        for variant in repro.variants:
            if variant.outcome is ExpectedOutcome.FAILS and variant.signature.raises:
                by_signature.setdefault(variant.signature, []).append(variant)
        for signature, variants in by_signature.items():
            yield SignatureEntry(repro, signature, tuple(variants))


def _texts(entry: SignatureEntry) -> Iterator[str]:
    """Yield every text of an entry."""
    yield from entry.signature.match
    yield from (text for text, _ in (*entry.texts, *entry.common_texts, *entry.symptoms))


@lru_cache(maxsize=4096)
def _probes(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the probes of a text: two pairs of words, because a line break may separate one pair."""
    text = normalise(text)
    words = sorted({word.casefold() for word in _whole_words(text)}, key=lambda word: (-len(word), word))
    pairs = tuple(tuple(words[at : at + 2]) for at in (0, 2) if len(words) > at + 1)
    others = [word.casefold() for word in reversed(_WORD.findall(text)) if word.casefold() not in _PLACEHOLDERS]
    return pairs or ((max(others, key=len, default=""),),)  # an empty probe is in every text


def has_class(raised: Raised, signature: Signature) -> bool:
    """Whether an exception is of the class that a signature names, or of a class derived from it."""
    wanted = signature.raises or ""
    return any(name == wanted or name.endswith("." + wanted) for name in (raised.type, *raised.bases))


def _class_name(qualified_name: str) -> str:
    return qualified_name.rpartition(".")[2]


def _documented_words(signature: Signature) -> Iterator[list[str]]:
    """Yield the whole words of each documented text."""
    for text in signature.match:
        yield _whole_words(normalise(text))


def _whole_words(text: str) -> list[str]:
    """Return the words that a matching message must contain whole.

    The first and the last word are excluded: the text may begin or end inside a word of the message.
    """
    return [
        word[0]
        for word in _WORD.finditer(text)
        if word.start() > 0 and word.end() < len(text) and word[0].lower() not in _PLACEHOLDERS
    ]
