"""Code in the text of an issue outside of blocks: from an import on, as long as it is Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from repros.scripts.try_.source import PROBLEMS, parse

_IMPORT = re.compile(r"(?P<indent>\s*)(?P<prompt>>>> )?(?:import [\w.]+|from [\w.]+ import \S)")
FENCE = "```"
"""A line that ends any code."""
_MOST_LINES = 2_000
"""Limit of a stretch of code."""


def find_loose(lines: Sequence[str], clean: Callable[[list[str]], str]) -> Iterator[tuple[str, int]]:
    """Yield each stretch of Python that begins with an import and does more, with its first line's number, from 1.

    Args:
        lines: the lines of the text.
        clean: returns the code of lines without the prompts of a session and the commands of a notebook.
    """
    at = 0
    while at < len(lines):
        match = _IMPORT.match(lines[at])
        source = _longest(_stretch(lines[at : at + _MOST_LINES], match), clean) if match else ""
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


def _longest(taken: list[str], clean: Callable[[list[str]], str]) -> str:
    """Return the longest beginning of the lines that is Python; empty if it only imports."""
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
    """Return a source without trailing words of prose, which Python parses as unused names."""
    while body and _is_prose(body[-1]):
        body = body[:-1]
    if all(isinstance(node, ast.Import | ast.ImportFrom) for node in body):
        return ""
    return "".join(f"{line}\n" for line in source.split("\n")[: body[-1].end_lineno])


def _is_prose(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and not any(isinstance(node, ast.Call) for node in ast.walk(statement))
