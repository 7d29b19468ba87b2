"""The script in an issue: one of the code blocks of its Markdown, or code outside of blocks."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from repros.model.errors import ReprosError
from repros.scripts.try_.loose import FENCE, find_loose
from repros.scripts.try_.source import PROBLEMS, parse

_QUOTE = re.compile(r"^ {0,3}>(?!>) ?", re.MULTILINE)
"""The prefix of a quoted line, as opposed to a prompt of Python."""
_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<word>[\w+.-]*)")
_PYTHON = {"", "py", "py3", "python", "python3", "pycon", "ipython", "ipython3"}
"""Info strings of code fences that may be Python."""
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")
_OF_A_NOTEBOOK = re.compile(r"^\s*[!%]")


@dataclass(frozen=True)
class Code:
    """The code of an issue."""

    source: str
    number: int | None
    """Its position among the issue's blocks, from 1; None if it is outside of blocks."""
    blocks: int
    """Number of blocks in the issue."""
    line: int
    """The line of its opening fence, or of its first import."""

    @property
    def location(self) -> str:
        """Where it is: `block 2 of 3`."""
        return f"block {self.number} of {self.blocks}" if self.number else "the code outside of blocks"


def find_code(markdown: str, name: str, number: int | None = None) -> Code:
    """Return the block of an issue with a number; by default the longest that is Python and imports something.

    Without such a block, code outside of blocks is searched.

    Raises:
        ReprosError: there is no code.
    """
    blocks = [(word, _clean(lines), line) for word, lines, line in _blocks(markdown)]
    if number is not None:
        if not 1 <= number <= len(blocks):
            raise ReprosError(f"--block {number}: {name} has {len(blocks)} code blocks; expected one of them.")
        _, source, line = blocks[number - 1]
        return Code(source, number, len(blocks), line)
    scripts = [
        Code(source, position, len(blocks), line)
        for position, (word, source, line) in enumerate(blocks, 1)
        if word.lower() in _PYTHON and _is_script(source)
    ]
    if not scripts:
        loose = find_loose(_outside(markdown), _clean)
        scripts = [Code(source, None, len(blocks), line) for source, line in loose]
    if not scripts:
        raise ReprosError(
            f"{name} has no code block that is Python and imports something, among {len(blocks)}; "
            "name one with --block N, or save the script in a file."
        )
    return max(scripts, key=lambda code: len(code.source.splitlines()))


def _outside(markdown: str) -> list[str]:
    """Return the lines of an issue with its blocks replaced by fences, which end any Python code."""
    lines = _QUOTE.sub("", markdown).split("\n")
    for _, inside, begin in _blocks(markdown):
        end = begin + len(inside) + 1
        lines[begin - 1 : end] = [FENCE] * len(lines[begin - 1 : end])
    return lines


def _blocks(markdown: str) -> Iterator[tuple[str, list[str], int]]:
    """Yield the info string, the lines and the first line's number of each block; the last may lack its end."""
    fence, word, begin, lines = "", "", 0, list[str]()
    for number, line in enumerate(_QUOTE.sub("", markdown).split("\n"), 1):
        opening = _FENCE.match(line)
        if not fence and opening:
            fence, word, begin, lines = opening["fence"], opening["word"], number, []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield word, lines, begin
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        yield word, lines, begin


def _clean(lines: list[str]) -> str:
    """Return code without the prompts of an interactive session and the commands of a notebook."""
    code = textwrap.dedent("\n".join(lines)).strip("\n").split("\n")
    if any(line.startswith(">>>") for line in code):  # the other lines are output
        code = [_PROMPT.sub("", line) for line in code if _PROMPT.match(line)]
    return _even("\n".join(f"# {line}" if _OF_A_NOTEBOOK.match(line) else line for line in code) + "\n")


def _even(code: str) -> str:
    """Return code with spaces for tabs if its indentation mixes both: a tab to each eighth column."""
    try:
        parse(code)
    except TabError:
        return code.expandtabs(8)
    except PROBLEMS:
        pass
    return code


def _is_script(source: str) -> bool:
    try:
        tree = parse(source)
    except PROBLEMS:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
