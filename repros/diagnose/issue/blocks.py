"""The Markdown of an issue: its code blocks, the text outside of them, and the sections below its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_QUOTE = re.compile(r"^ {0,3}>(?!>) ?", re.MULTILINE)
"""The prefix of a quoted line, as opposed to a prompt of Python."""
_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,}(?!~*\^))\s*(?P<word>[\w+.-]*)")
_HEADING = re.compile(
    r"^ {0,3}(?:#{1,6}\s+(?P<hashes>\S.*)|\*\*(?P<bold>[^*\n]{2,80})\*\*:?|__(?P<lines>[^_\n]{2,80})__:?)\s*$"
)
_UNDERLINE = re.compile(r"^ {0,3}(?:={3,}|-{3,})\s*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?(?:details|summary|b|br|p|h\d|code|pre|kbd|sub|sup)\b[^<>\n]{0,80}>", re.IGNORECASE)
_FRAME = re.compile(r"^.{0,60}?File \"[^\"\n]{1,300}\", line \d+(?:, in \S+)?\s*$")
_NOT_CODE = re.compile(
    r"^.{0,60}?(?:File \"[^\"\n]{1,300}\", line \d|(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Warning)\b)|^\s*$"
)
"""What follows a frame whose line of code was not printed."""
_MARKS = re.compile(r"^\W*[~^]+\s*$")
FENCE = "```"
"""A line that ends any code."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    word: str
    """The first word after its opening fence: `python`, `bash`, ..."""
    lines: tuple[str, ...]
    line: int
    """The line of its opening fence, from 1."""
    heading: str
    """The last heading before it, in lower case; empty if there is none."""

    @property
    def text(self) -> str:
        """Its lines."""
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Section:
    """The text below one heading, without code blocks."""

    heading: str
    """In lower case; empty for what precedes the first."""
    text: str


def without_quotes(markdown: str) -> list[str]:
    """Return the lines of an issue; those that it quotes lose their prefix."""
    return _QUOTE.sub("", markdown).split("\n")


def find_blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of an issue; the last may lack its end."""
    return list(_blocks(without_quotes(markdown)))


def _blocks(text: Sequence[str]) -> Iterator[Block]:
    fence, word, begin, heading, lines = "", "", 0, "", list[str]()
    for number, line in enumerate(text, 1):
        opening = _FENCE.match(line)
        if not fence and opening:
            fence, word, begin, lines = opening["fence"], opening["word"], number, []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield Block(word, tuple(lines), begin, heading)
            fence = ""
        elif fence:
            lines.append(line)
        else:
            heading = _heading(line) or heading
    if fence:
        yield Block(word, tuple(lines), begin, heading)


def outside_of_blocks(markdown: str) -> list[str]:
    """Return the lines of an issue with its blocks replaced by fences, which end any Python code."""
    lines = without_quotes(markdown)
    for block in find_blocks(markdown):
        end = block.line + len(block.lines) + 1
        lines[block.line - 1 : end] = [FENCE] * len(lines[block.line - 1 : end])
    return lines


def find_sections(markdown: str) -> list[Section]:
    """Return the sections of an issue, without its blocks, comments and tags."""
    sections, heading, lines = list[Section](), "", list[str]()
    text = _TAG.sub("", _COMMENT.sub("", "\n".join(outside_of_blocks(markdown))))
    for line in text.split("\n"):
        if found := _heading(line):
            sections.append(Section(heading, "\n".join(lines).strip()))
            heading, lines = found, []
        elif line != FENCE and not _UNDERLINE.match(line):
            lines.append(line)
    return [*sections, Section(heading, "\n".join(lines).strip())]


def without_frames(text: str) -> str:
    """Return a text without the frames of Python's tracebacks and their lines of code, which report nothing."""
    kept, is_after, indent = list[str](), False, 0
    for line in text.split("\n"):
        if _FRAME.match(line):
            is_after, indent = True, _indent(line)
        elif is_after and not _NOT_CODE.match(line):
            is_after = _indent(line) > indent  # else a paste has lost its indentation: one line is code
        elif not _MARKS.match(line):
            kept.append(line)
            is_after = False
    return "\n".join(kept)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _heading(line: str) -> str:
    """Return the heading that a line is, in lower case; empty if it is none."""
    match = _HEADING.match(line)
    return (match["hashes"] or match["bold"] or match["lines"]).strip(" *:_#").lower() if match else ""
