"""Read a log's bytes and split them into lines, with a limit on both and a note on everything cut off."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from repros.errors import ReprosError

MOST_BYTES = 64 * 2**20
"""Of a longer log only the end is read: the error that ended the program is there."""
LONGEST_LINE = 20_000
"""Characters; :mod:`repros.engine.signature` looks at no more of a message."""
_BLOCK = 2**20
_BINARY_SHARE = 0.1
"""A file is binary if more than this share of its characters does not occur in text ..."""
_BINARY_COUNT = 8
"""... and if there are more of them than this."""

# Colours and window titles of a terminal, and colours that lost their escape character in a web page.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\[(?:\d{1,3}(?:;\d{1,3}){0,9})?m|\x1b[@-Z\\-_]"
)
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1a\ufffd]")
_ENCODINGS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class LogLines:
    """A log's lines without terminal escapes."""

    lines: tuple[tuple[int, str], ...]
    """Line number as an editor counts, and text. Parts of a line that carriage returns separate share its number."""
    notes: tuple[str, ...] = ()
    """A sentence for each thing that was left out."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Iterate over number and text."""
        return iter(self.lines)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; of a long one, the end.

    Raises:
        ReprosError: the path is a folder, or the file cannot be read.
    """
    if path.is_dir():
        raise _unreadable(str(path), "is a folder")
    try:
        with path.open("rb") as file:
            return read_stream(file)
    except OSError as error:
        raise _unreadable(str(path), f"cannot be read ({error.strerror})") from error


def read_stream(file: BinaryIO) -> bytes:
    """Read a stream and return its last bytes: one or more beyond :data:`MOST_BYTES` if it has so many."""
    tail = bytearray()
    while block := file.read(_BLOCK):
        tail += block
        if len(tail) > 2 * MOST_BYTES:
            del tail[: len(tail) - MOST_BYTES - 1]
    return bytes(tail)


def decode_lines(raw: bytes, name: str = "the input") -> LogLines:
    """Decode a log, remove terminal escapes and split it into lines.

    Args:
        raw: the log.
        name: the log's name in an error.

    Raises:
        ReprosError: the log is empty or binary.
    """
    notes = []
    if len(raw) > MOST_BYTES:
        notes.append(f"Only the last {MOST_BYTES // 2**20} MB of the log were read; line numbers count from there.")
        raw = raw[-MOST_BYTES:]
    text = _decode(raw)
    if not text.strip():
        raise _unreadable(name, "is empty")
    if _is_binary(text[:_BLOCK]):
        raise _unreadable(name, "is not text")
    lines = tuple(_split_lines(_ESCAPES.sub("", text)))
    if cut := sum(len(line) > LONGEST_LINE for _, line in lines):
        notes.append(f"Only the first {LONGEST_LINE:,} characters of each line were read ({cut} longer).")
        lines = tuple((number, line[:LONGEST_LINE]) for number, line in lines)
    return LogLines(lines, tuple(notes))


def _unreadable(name: str, problem: str) -> ReprosError:
    return ReprosError(f"{name} {problem}; expected the text of a log or a traceback.")


def _decode(raw: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark: PowerShell writes that when output is redirected to a file."""
    for mark, encoding in _ENCODINGS.items():
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    return raw.decode("utf-8", "replace")


def _is_binary(sample: str) -> bool:
    return len(_NOT_TEXT.findall(sample)) > max(_BINARY_COUNT, _BINARY_SHARE * len(sample))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if "\r" not in line:
            yield number, line
            continue
        for part in line.rstrip("\r").split("\r"):
            yield number, part
