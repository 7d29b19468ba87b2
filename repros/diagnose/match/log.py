"""Read a log's bytes and split them into lines, with a limit on both and a note for each omission.

The bytes stay in memory and are decoded line by line in each iteration: objects for all lines of a long log would take
many times its size.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from repros.model.errors import ReprosError

MOST_BYTES = 64 * 2**20
"""Of a longer log, only the end is read: the error that ended the program is there."""
MOST_LINES = 1_000_000
"""Of a log with more lines, only the end is read; the parts between carriage returns count as lines."""
LONGEST_LINE = 20_000
"""Characters; :mod:`repros.engine.signature` reads no more of a message."""
_LONGEST_LINE_BYTES = 10 * LONGEST_LINE
"""Bytes decoded of one line: characters may have several bytes, and terminal escapes are removed."""
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
_NOT_BLANK = re.compile(rb"[^\s\0]")
_LINE_END = re.compile(rb"\r+\n?|\n")
_RANK_IN_NAME = re.compile(r"[/\\](\d{1,6})[/\\](?:stdout|stderr)(?:\.log)?$|rank[-_]?(\d{1,6})(?:\D[^/\\]*)?$")
_ENCODINGS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class LogLines:
    """A log's lines without terminal escapes; iterable any number of times."""

    raw: bytes
    """UTF-8."""
    notes: tuple[str, ...] = ()
    """A sentence for each omission."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Iterate over line numbers, as an editor counts, and texts.

        The parts of a line between carriage returns have the same number. A block of short lines without a carriage
        return, as most are, is decoded at once, which takes a third of the time.
        """
        number, start = 1, 0
        while (end := self.raw.rfind(b"\n", start, start + _BLOCK) + 1) > 0:
            block = self.raw[start:end]
            if b"\r" in block or _is_long(block):
                break
            for text in block.decode("utf-8", "replace").split("\n")[:-1]:
                yield number, _without_escapes(text)
                number += 1
            start = end
        yield from self._lines_from(start, number)

    def _lines_from(self, start: int, number: int) -> Iterator[tuple[int, str]]:
        """Iterate over the lines from an offset on, whatever their ends and lengths."""
        for end in _LINE_END.finditer(self.raw, start):
            is_part = not end[0].endswith(b"\n")
            if is_part and end.end() == len(self.raw):
                break
            yield number, _decode_line(self.raw[start : min(end.start(), start + _LONGEST_LINE_BYTES)])[:LONGEST_LINE]
            start = end.end()
            number += not is_part
        yield number, _decode_line(self.raw[start : start + _LONGEST_LINE_BYTES].rstrip(b"\r"))[:LONGEST_LINE]


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; of a long file, the end.

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
    """Read a stream and return its last bytes; of a longer one, more than :data:`MOST_BYTES` to show that it is cut."""
    blocks: deque[bytes] = deque()
    size = 0
    while block := file.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        while size - len(blocks[0]) > MOST_BYTES:
            size -= len(blocks.popleft())
    return b"".join(blocks)


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
    raw = _to_utf8(raw)
    if not _NOT_BLANK.search(raw):
        raise _unreadable(name, "is empty")
    if _is_binary(raw[:_BLOCK].decode("utf-8", "replace")):
        raise _unreadable(name, "is not text")
    if (start := _start_of_last_lines(raw)) > 0:
        notes.append(f"Only the last {MOST_LINES:,} lines of the log were read; line numbers count from there.")
        raw = raw[start:]
    if cut := _count_longer_lines(raw):
        notes.append(f"Only the first {LONGEST_LINE:,} characters of each line were read ({cut} longer).")
    return LogLines(raw, tuple(notes))


def join_logs(logs: Sequence[tuple[str, bytes]]) -> LogLines:
    """Decode logs as one, one after the other, with a note on the line at which each begins.

    Files of single ranks, as torchrun's `--log-dir` has them, get the prefix of their rank unless they have prefixes.

    Args:
        logs: the name and the bytes of each.

    Raises:
        ReprosError: one is empty or binary.
    """
    decoded = [decode_lines(raw, name) for name, raw in logs]
    if len(decoded) == 1:
        return decoded[0]
    joined, notes, line = b"", list[str](), 1
    for (name, _), lines in zip(logs, decoded, strict=True):
        notes += [f"{name} begins at line {line}.", *lines.notes]
        part = _with_rank(name, lines.raw.rstrip(b"\n")) + b"\n\n"
        joined += part
        line += part.count(b"\n")
    return LogLines(joined, tuple(notes))


def _with_rank(name: str, raw: bytes) -> bytes:
    """Return a log with the prefix `[rank1]:` on each line if its name has the rank and its lines have none."""
    rank = _RANK_IN_NAME.search(name)
    if not rank or b"[rank" in raw:
        return raw
    prefix = b"[rank%d]: " % int(rank[1] or rank[2])
    return prefix + raw.replace(b"\n", b"\n" + prefix)


def _unreadable(name: str, problem: str) -> ReprosError:
    return ReprosError(f"{name} {problem}; expected the text of a log or a traceback.")


def _to_utf8(raw: bytes) -> bytes:
    """Return the bytes as UTF-8: UTF-16 with a byte order mark is converted, and the mark of UTF-8 removed.

    PowerShell writes UTF-16 when output is redirected to a file.
    """
    for mark, encoding in _ENCODINGS.items():
        if raw.startswith(mark):
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            blocks = range(0, len(raw), _BLOCK)
            return b"".join(decoder.decode(raw[at : at + _BLOCK]).encode("utf-8", "replace") for at in blocks)
    return raw.removeprefix(codecs.BOM_UTF8)


def _is_binary(sample: str) -> bool:
    return len(_NOT_TEXT.findall(sample)) > max(_BINARY_COUNT, _BINARY_SHARE * len(sample))


def _start_of_last_lines(raw: bytes) -> int:
    """Return the offset of the last :data:`MOST_LINES` lines; 0 if there are no more."""
    missing, end = MOST_LINES, len(raw)
    while end > 0:
        start = max(0, end - _BLOCK)
        count = raw.count(b"\n", start, end) + raw.count(b"\r", start, end)
        if count >= missing:
            ends = [line_end.end() for line_end in re.finditer(rb"[\r\n]", raw[start:end])]
            return start + ends[-missing]
        missing, end = missing - count, start
    return 0


def _count_longer_lines(raw: bytes) -> int:
    """Return the number of lines with more than :data:`LONGEST_LINE` characters."""
    return sum(
        end - start > _LONGEST_LINE_BYTES or len(_decode_line(raw[start:end])) > LONGEST_LINE
        for start, end in _longer_lines(raw)
    )


def _longer_lines(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line with more than :data:`LONGEST_LINE` bytes; reads each byte at most twice.

    All lines that end within :data:`LONGEST_LINE` bytes of a line's start are shorter: the search continues after the
    last of them.
    """
    start = 0
    while len(raw) - start > LONGEST_LINE:
        reach = start + LONGEST_LINE + 1
        last = max(raw.rfind(b"\n", start, reach), raw.rfind(b"\r", start, reach))
        if last < 0:
            line_end = _LINE_END.search(raw, reach)
            last = line_end.start() if line_end else len(raw)
            yield start, last
        start = last + 1


def _is_long(block: bytes) -> bool:
    """Whether a line of a block may have more than :data:`LONGEST_LINE` characters."""
    return next(_longer_lines(block), None) is not None


def _decode_line(line: bytes) -> str:
    return _without_escapes(line.decode("utf-8", "replace"))


def _without_escapes(text: str) -> str:
    return _ESCAPES.sub("", text) if "\x1b" in text or "[" in text else text
