"""Find documented messages in a log without an exception's line: prose, an issue's title, a torn or quoted message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from repros.match.failures import LONGEST_MESSAGE, Failure, Link
from repros.match.index import SignatureIndex
from repros.model import Raised


def find_messages(lines: Iterable[tuple[int, str]], index: SignatureIndex) -> Iterator[Failure]:
    """Yield a failure for each paragraph with a documented message and each class that its signatures name."""
    for number, text in _paragraphs(lines):
        for class_name in dict.fromkeys(match.entry.signature.raises or "" for match in index.find_texts(text)):
            raised = Raised(class_name, (), text, ())
            yield Failure((Link(raised, number, has_traceback=False, has_class=False),), ())


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield each run of lines between blank ones as one line, with the number of its first."""
    for is_blank, group in groupby(lines, lambda line: not line[1].strip()):
        if not is_blank:
            paragraph = list(group)
            yield paragraph[0][0], " ".join(text.strip() for _, text in paragraph)[:LONGEST_MESSAGE]
