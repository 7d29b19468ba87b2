"""Find documented messages outside of exceptions: prose, an issue's title, a torn or quoted message, a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.match.index import SignatureIndex, SignatureMatch
from repros.model import Raised

_MOST_LINES, _MOST_CHARACTERS = 64, 10_000
"""Of one block: messages are torn into fewer lines, and the index reads no more of one line."""
_OVERLAP = 8
"""Lines shared by one block and the next, so that no message is split between them."""
_MOST_REMEMBERED = 10_000

Block = list[tuple[int, str]]
"""Consecutive lines without a blank line between them, each with its number."""


def find_messages(
    lines: Iterable[tuple[int, str]], index: SignatureIndex, known: Collection[str] = ()
) -> Iterator[LogFailure]:
    """Yield a failure for each documented text and exception class of the signatures, at its first occurrence.

    Args:
        lines: the log.
        index: the catalogue's signatures.
        known: ids of repros to skip.
    """
    yielded: set[tuple[str, str]] = set()
    search = _Search(index)
    for block in _blocks(lines):
        for number, text, match in search.find(block):
            key = (match.entry.signature.raises or "", match.matched_text)
            if match.entry.repro.id not in known and key not in yielded:
                yielded.add(key)
                raised = Raised(key[0], (), text, ())
                yield LogFailure((ChainLink(raised, number, has_traceback=False, has_class=False),), ())


class _Search:
    """A search that skips the texts it has searched before."""

    def __init__(self, index: SignatureIndex) -> None:
        self._index = index
        self._searched: set[str] = set()

    def find(self, block: Block) -> Iterator[tuple[int, str, SignatureMatch]]:
        """Yield each documented text in a block with its line; one over several lines is found in the joined lines."""
        joined = " ".join(text.strip() for _, text in block)
        if not self._is_new(joined):
            return
        ids: set[str] = set()
        for number, text in block:
            for match in self._index.find_texts(text) if self._is_new(text.strip()) else ():
                ids.add(match.entry.repro.id)
                yield number, text.strip(), match
        for match in self._index.find_texts(joined):
            if match.entry.repro.id not in ids:
                yield block[0][0], joined, match

    def _is_new(self, text: str) -> bool:
        """Whether a text may contain a documented text and was not searched before."""
        if text in self._searched or not self._index.may_match(text):
            return False
        if len(self._searched) >= _MOST_REMEMBERED:
            self._searched.clear()
        self._searched.add(text)
        return True


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """Yield the lines between blank lines; a long block as several that overlap."""
    block: Block = []
    size = fresh = 0
    for number, text in lines:
        is_blank = not text or text.isspace()
        if fresh and (is_blank or len(block) >= _MOST_LINES or size + len(text) > _MOST_CHARACTERS):
            yield block
            block = [] if is_blank else [line for line in block[-_OVERLAP:] if len(line[1]) < _MOST_CHARACTERS // 20]
            size, fresh = sum(len(line[1]) for line in block), 0
        if not is_blank:
            block.append((number, text))
            size, fresh = size + len(text), fresh + 1
        elif not fresh:
            block, size = [], 0
    if fresh:
        yield block
