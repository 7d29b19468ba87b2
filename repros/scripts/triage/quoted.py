"""The messages that an issue quotes within its sentences, as lines of their own."""

from __future__ import annotations

import re
from dataclasses import replace

from repros.diagnose.issue.issue import MESSAGE
from repros.scripts.triage.kind import Input

_MOST_CONTINUED = 3
_QUOTES = {"\u201c": "\u201d", "'": "'", '"': '"', "*": "*"}
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def with_messages(given: Input) -> Input | None:
    """Return an issue in which messages within sentences are lines of their own; None if there is none.

    The other words of such a line are left out, so that the numbers of lines stay. A message in backticks may end on
    one of the next lines.
    """
    document = given.documents[0]
    lines = document.raw.decode("utf-8", "replace").split("\n")
    quoted = [MESSAGE.search(_joined(lines, at)) for at in range(len(lines))]
    if not any(quoted):
        return None
    shown = [_unquoted(found) if found else line for found, line in zip(quoted, lines, strict=True)]
    return replace(given, documents=(replace(document, raw="\n".join(shown).encode("utf-8", "replace")),))


def message_in(sentence: str) -> str:
    """Return the exception's class and message that a sentence quotes; empty if there is none."""
    found = MESSAGE.search(sentence)
    return _unquoted(found) if found else ""


def _joined(lines: list[str], at: int) -> str:
    """Return a line, with the next ones up to the end of a quote that it begins."""
    text = lines[at]
    if _FENCE.match(text):
        return text
    for line in lines[at + 1 : at + 1 + _MOST_CONTINUED]:
        if text.count("`") % 2 == 0 or not line.strip() or _FENCE.match(line):
            break
        text = f"{text} {line.strip()}"
    return text


def _unquoted(found: re.Match[str]) -> str:
    """Return a message up to the end of the quote that it begins."""
    before = found.string[found.start() - 1 : found.start()] if found.start() else ""
    end = _QUOTES.get(before, "\n")
    stop = found["message"].rfind(f"{end} ") if end != "\n" else -1
    message = found["message"][:stop] if stop > 0 else found["message"]
    return message.rstrip('`*"\u201d ')
