"""The script in an issue: one of the code blocks of its Markdown, or code outside of blocks."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from repros.diagnose.issue.blocks import FENCE, find_blocks, outside_of_blocks
from repros.engine.source import PROBLEMS, parse
from repros.model.errors import ReprosError

_PYTHON = {"", "py", "py3", "python", "python3", "pycon", "ipython", "ipython3"}
"""Info strings of code fences that may be Python."""
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")
_OF_A_NOTEBOOK = re.compile(r"^\s*[!%]")
_IMPORT = re.compile(r"(?P<indent>\s*)(?P<prompt>>>> )?(?:import [\w.]+|from [\w.]+ import \S)")
_MOST_LINES = 2_000
"""Limit of a stretch of code."""


@dataclass(frozen=True)
class IssueCode:
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


def find_code(markdown: str, name: str, number: int | None = None) -> IssueCode:
    """Return the block of an issue with a number; by default the longest that is Python and imports something.

    Without such a block, code outside of blocks is searched.

    Raises:
        ReprosError: there is no code.
    """
    blocks = [(block.word, _clean(block.lines), block.line) for block in find_blocks(markdown)]
    if number is not None:
        if not 1 <= number <= len(blocks):
            raise ReprosError(f"--block {number}: {name} has {len(blocks)} code blocks; expected one of them.")
        _, source, line = blocks[number - 1]
        return IssueCode(source, number, len(blocks), line)
    scripts = [
        IssueCode(source, position, len(blocks), line)
        for position, (word, source, line) in enumerate(blocks, 1)
        if word.lower() in _PYTHON and is_script(source)
    ]
    if not scripts:
        loose = _find_loose(outside_of_blocks(markdown))
        scripts = [IssueCode(source, None, len(blocks), line) for source, line in loose]
    if not scripts:
        raise ReprosError(
            f"{name} has no code block that is Python and imports something, among {len(blocks)}; "
            "name one with --block N, or save the script in a file."
        )
    return max(scripts, key=lambda code: len(code.source.splitlines()))


def _clean(lines: Sequence[str]) -> str:
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


def is_script(source: str) -> bool:
    """Return whether a source is Python that imports something."""
    try:
        tree = parse(source)
    except PROBLEMS:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))


def _find_loose(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each stretch of Python that begins with an import and does more, with its first line's number, from 1."""
    at = 0
    while at < len(lines):
        match = _IMPORT.match(lines[at])
        source = _longest(_stretch(lines[at : at + _MOST_LINES], match)) if match else ""
        if source:
            yield source, at + 1
        at += source.count("\n") or 1


def _stretch(lines: Sequence[str], begin: re.Match[str]) -> list[str]:
    """Return the lines that may belong to code that begins with this import: as indented, all at a prompt or none."""
    indent, prompt = begin["indent"], begin["prompt"]

    def belongs(line: str) -> bool:
        is_inside = not line.strip() or line.startswith(indent)
        return line != FENCE and is_inside and (prompt is not None or not line.startswith(f"{indent}>>>"))

    return list(takewhile(belongs, lines))


def _longest(taken: list[str]) -> str:
    """Return the longest beginning of the lines that is Python; empty if it only imports."""
    while taken:
        source = _clean(taken)
        try:
            return _without_prose(source, parse(source).body)
        except SyntaxError as error:
            taken = taken[: min((error.lineno or 1) - 1, len(taken) - 1)]
        except PROBLEMS:
            return ""
    return ""


def _without_prose(source: str, body: list[ast.stmt]) -> str:
    """Return a source without trailing words of prose, which Python parses as unused names."""
    while body and _is_prose(body[-1]):
        body = body[:-1]
    if all(isinstance(node, ast.Import | ast.ImportFrom) for node in body):
        return ""
    return "".join(f"{line}\n" for line in source.split("\n")[: body[-1].end_lineno])


def _is_prose(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and not any(isinstance(node, ast.Call) for node in ast.walk(statement))
