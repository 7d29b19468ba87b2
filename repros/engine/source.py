"""A Python source with its syntax tree, and edits of spans that leave the rest of its text unchanged."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

PROBLEMS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""The exceptions that parsing a text may raise."""
Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Edit:
    """A span of a source, in bytes, and its replacement."""

    begin: int
    end: int
    text: str = ""


class Source:
    """A source with its syntax tree. Offsets count bytes of UTF-8, as the tree does."""

    def __init__(self, source: str) -> None:
        """Parse a source.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: it is no Python.
        """
        self.source = source
        self.tree = parse(source)
        self._data = source.encode()
        self._begins = [0, *accumulate(len(line) for line in self._data.splitlines(keepends=True))]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node except the module."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        """Return the offsets of a node's begin and end."""
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._begins[node.lineno - 1] + node.col_offset, self._begins[end_line - 1] + end

    def lines(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Return the offsets of the whole lines of a statement, its decorators included, or of an expression."""
        return self._begins[first_line(node) - 1], self._begins[node.end_lineno or node.lineno]

    def text(self, begin: int, end: int) -> str:
        """Return a piece of the source."""
        return self._data[begin:end].decode()

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return a node's source."""
        return self.text(*self.span(node))

    def indent(self, statement: ast.stmt) -> str:
        """Return the text in front of a statement on its line: blanks, unless another one is there."""
        return self.text(self._begins[statement.lineno - 1], self.span(statement)[0])

    def apply(self, edits: Iterable[Edit]) -> str:
        """Return the source with edits; one within another one is left out."""
        parts, at = [], 0
        for edit in sorted(edits, key=lambda edit: (edit.begin, -edit.end)):
            if edit.begin >= at:
                parts += [self._data[at : edit.begin], edit.text.encode()]
                at = edit.end
        return b"".join([*parts, self._data[at:]]).decode()

    def removal(self, statement: ast.stmt) -> Edit:
        """Return the edit that removes a statement with the comments directly above it."""
        begin, end = self.lines(statement)
        indent = re.escape(self.indent(statement))
        comments = re.search(rf"(?:^{indent}#.*\n)*\Z", self.text(0, begin), re.MULTILINE)
        return Edit(begin - len(comments[0].encode()) if comments else begin, end)


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a source; warnings, such as of invalid escapes, concern its runs only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def first_line(node: ast.stmt | ast.expr) -> int:
    """Return the number of a node's first line, from 1, with the decorators of a function or class."""
    decorators = node.decorator_list if isinstance(node, Block) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def edit_repeatedly(text: str, find: Callable[[Source], Iterator[Edit]]) -> str:
    """Return a text after the first edit that `find` yields for it, made again and again until there is none."""
    source = Source(text)
    while edit := next(find(source), None):
        source = Source(source.apply([edit]))
    return source.source
