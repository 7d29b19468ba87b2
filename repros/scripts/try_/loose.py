"""Code in the text of an issue that stands in no block: from an import on, as far as it is Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from repros.scripts.try_.source import PROBLEMS, parse

_IMPORT = re.compile(r"(?P<indent>\s*)(?P<prompt>>>> )?(?:import [\w.]+|from [\w.]+ import \S)")
FENCE = "```"
"""A line that belongs to no code."""
_MOST_LINES = 2_000
"""Of a stretch; a longer one is no script of an issue."""


def find_loose(lines: Sequence[str], clean: Callable[[list[str]], str]) -> Iterator[tuple[str, int]]:
    """Yield each stretch of Python that begins with an import and does more, and the number of its first line, from 1.

    Args:
        lines: those of the text.
        clean: returns the code of lines, without what an interactive session or a notebook adds.
    """
    at = 0
    while at < len(lines):
        found = _IMPORT.match(lines[at])
        source = _longest(_stretch(lines[at : at + _MOST_LINES], found), clean) if found else ""
        if source:
            yield source, at + 1
        at += source.count("\n") or 1


def _stretch(lines: Sequence[str], begin: re.Match[str]) -> list[str]:
    """Return the lines that may belong to code whose first one begins so: as indented, all at a prompt or none."""
    indent, prompt = begin["indent"], begin["prompt"]

    def belongs(line: str) -> bool:
        is_inside = not line.strip() or line.startswith(indent)
        return line != FENCE and is_inside and (prompt is not None or not line.startswith(f"{indent}>>>"))

    return list(takewhile(belongs, lines))


def _longest(taken: list[str], clean: Callable[[list[str]], str]) -> str:
    """Return as much of lines as is Python, from the first on; nothing if it only imports."""
    while taken:
        source = clean(taken)
        try:
            return _without_prose(source, parse(source).body)
        except SyntaxError as error:
            taken = taken[: min((error.lineno or 1) - 1, len(taken) - 1)]
        except PROBLEMS:
            return ""
    return ""


def _without_prose(source: str, body: list[ast.stmt]) -> str:
    """Return a source without a word at its end that is prose: Python takes it for a name that nobody uses."""
    while body and _is_prose(body[-1]):
        body = body[:-1]
    if all(isinstance(node, ast.Import | ast.ImportFrom) for node in body):
        return ""
    return "".join(f"{line}\n" for line in source.split("\n")[: body[-1].end_lineno])


def _is_prose(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and not any(isinstance(node, ast.Call) for node in ast.walk(statement))
