"""Bytes of a log -> its lines, bounded: whatever is cut is said."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from repros.errors import ReprosError

MOST_BYTES = 64 * 2**20
"""Of a longer log the end is read: that is where it says what it died of."""
LONGEST_LINE = 20_000
"""Characters; as many as :mod:`repros.engine.signature` looks at."""
_BLOCK = 2**20
_MOST_STRANGE, _FEW = 0.1, 8
"""Share of characters that no text has, from which on a file is taken for binary, unless there are only so few."""

# What colours a terminal, what sets its title, and colours that lost their escape character in a web page.
_COLOURS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\[(?:\d{1,3}(?:;\d{1,3}){0,9})?m|\x1b[@-Z\\-_]"
)
_STRANGE = re.compile("[\x00-\x08\x0e-\x1a\ufffd]")
_ENCODINGS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class UnreadableLogError(ReprosError):
    """A log that is not there, is empty, or is no text."""

    def __init__(self, name: str, problem: str) -> None:
        """Compose the sentence."""
        super().__init__(f"{name} {problem}; expected the text of a log or a traceback.")


@dataclass(frozen=True)
class Lines:
    """A log's lines, free of colours."""

    lines: tuple[tuple[int, str], ...]
    """Line number as an editor counts, and text; what a carriage return overwrites are several with one number."""
    notes: tuple[str, ...] = ()
    """A sentence for each thing that was left out."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Iterate over number and text."""
        return iter(self.lines)


def load(path: Path) -> bytes:
    """Return a file's bytes: of a long one the end.

    Raises:
        UnreadableLogError: no such file, or not one that can be read.
    """
    if path.is_dir():
        raise UnreadableLogError(str(path), "is a folder")
    try:
        with path.open("rb") as file:
            return drain(file)
    except OSError as error:
        raise UnreadableLogError(str(path), f"cannot be read ({error.strerror})") from error


def drain(file: BinaryIO) -> bytes:
    """Read a stream to its end and return the last :data:`MOST_BYTES`, and more where it was longer."""
    kept = bytearray()
    while block := file.read(_BLOCK):
        kept += block
        if len(kept) > 2 * MOST_BYTES:
            del kept[: len(kept) - MOST_BYTES - 1]
    return bytes(kept)


def lines(raw: bytes, name: str = "the input") -> Lines:
    """Return the lines of a log.

    Raises:
        UnreadableLogError: nothing in it, or no text.
    """
    notes = []
    if len(raw) > MOST_BYTES:
        notes.append(f"Only the last {MOST_BYTES // 2**20} MB of the log were read; line numbers count from there.")
        raw = raw[-MOST_BYTES:]
    text = _decoded(raw)
    if not text.strip():
        raise UnreadableLogError(name, "is empty")
    sample = text[:_BLOCK]
    if len(_STRANGE.findall(sample)) > max(_FEW, _MOST_STRANGE * len(sample)):
        raise UnreadableLogError(name, "is not text")
    found = tuple(_split(_COLOURS.sub("", text)))
    if cut := sum(len(line) > LONGEST_LINE for _, line in found):
        notes.append(f"Of lines longer than {LONGEST_LINE:,} characters ({cut}) only so much was read.")
        found = tuple((number, line[:LONGEST_LINE]) for number, line in found)
    return Lines(found, tuple(notes))


def _decoded(raw: bytes) -> str:
    """Return the text; Windows writes UTF-16 where a shell's output is sent to a file."""
    for mark, encoding in _ENCODINGS.items():
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    return raw.decode("utf-8", "replace")


def _split(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if "\r" not in line:
            yield number, line
            continue
        for part in line.rstrip("\r").split("\r"):
            yield number, part
