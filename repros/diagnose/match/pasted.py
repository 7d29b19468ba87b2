"""Find documented messages outside of exceptions: prose, an issue's title, a torn or quoted message, a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from repros.diagnose.match.failures import Failure, Link
from repros.diagnose.match.index import SignatureIndex, SignatureMatch
from repros.model import Raised

_MOST_LINES, _MOST_CHARACTERS = 64, 10_000
"""Of one piece: messages are torn into fewer lines, and the index reads no more of one line."""
_OVERLAP = 8
"""Lines at the end of a piece with which the next one begins, so that no message is torn between two."""

_MOST_SEEN = 10_000

Piece = list[tuple[int, str]]
"""Lines without a blank one between them, each with its number."""


def find_messages(
    lines: Iterable[tuple[int, str]], index: SignatureIndex, known: Collection[str] = ()
) -> Iterator[Failure]:
    """Yield a failure for each documented text and each class that its signatures name, where it stands first.

    Args:
        lines: the log.
        index: the catalogue's signatures.
        known: ids of repros that are not looked for.
    """
    found: set[tuple[str, str]] = set()
    search = _Search(index)
    for piece in _pieces(lines):
        for number, text, match in search.find(piece):
            key = (match.entry.signature.raises or "", match.matched_text)
            if match.entry.repro.id not in known and key not in found:
                found.add(key)
                raised = Raised(key[0], (), text, ())
                yield Failure((Link(raised, number, has_traceback=False, has_class=False),), ())


class _Search:
    """A search for texts that passes over what it has searched before."""

    def __init__(self, index: SignatureIndex) -> None:
        self._index = index
        self._seen: set[str] = set()

    def find(self, piece: Piece) -> Iterator[tuple[int, str, SignatureMatch]]:
        """Yield each text in a piece with its line; one that is torn is in the piece's lines together."""
        joined = " ".join(text.strip() for _, text in piece)
        if not self._is_new(joined):
            return
        ids: set[str] = set()
        for number, text in piece:
            for match in self._index.find_texts(text) if self._is_new(text.strip()) else ():
                ids.add(match.entry.repro.id)
                yield number, text.strip(), match
        for match in self._index.find_texts(joined):
            if match.entry.repro.id not in ids:
                yield piece[0][0], joined, match

    def _is_new(self, text: str) -> bool:
        """Whether a text may have a message and was not searched before."""
        if not self._index.may_match(text):
            return False
        if text in self._seen:
            return False
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(text)
        return True


def _pieces(lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
    """Yield runs of lines between blank ones; a long run as several pieces that overlap."""
    piece: Piece = []
    size = fresh = 0
    for number, text in lines:
        is_blank = not text or text.isspace()
        if fresh and (is_blank or len(piece) >= _MOST_LINES or size + len(text) > _MOST_CHARACTERS):
            yield piece
            piece = [] if is_blank else [line for line in piece[-_OVERLAP:] if len(line[1]) < _MOST_CHARACTERS // 20]
            size, fresh = sum(len(line[1]) for line in piece), 0
        if not is_blank:
            piece.append((number, text))
            size, fresh = size + len(text), fresh + 1
        elif not fresh:
            piece, size = [], 0
    if fresh:
        yield piece
