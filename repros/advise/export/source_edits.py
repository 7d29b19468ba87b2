"""Edits of Python source at positions of its syntax tree, which keep comments and layout unchanged."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK_LINES = re.compile(r"\n{4,}")


@dataclass(frozen=True)
class SourceEdit:
    """A replacement of a part of a text, with offsets in characters."""

    start: int
    end: int
    text: str = ""

    def apply(self, source: str) -> str:
        """Return the text with the part replaced."""
        return source[: self.start] + self.text + source[self.end :]


class SourceText:
    """A text with its syntax tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def segment(self, node: ast.expr) -> str:
        """Return a node's text."""
        return self.text[self.start(node) : self.end(node)]

    def start(self, node: ast.expr) -> int:
        """Return the offset of a node's first character."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        """Return the offset after a node's last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def line(self, number: int) -> str:
        """Return a line with its line end, by its number from 1."""
        return self._lines[number - 1]

    def lines(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last`."""
        return "".join(self._lines[first - 1 : last])

    def replace(self, node: ast.expr, text: str) -> SourceEdit:
        """Replace an expression."""
        return SourceEdit(self.start(node), self.end(node), text)

    def replace_lines(self, first: int, last: int, text: str = "") -> SourceEdit:
        """Replace whole lines."""
        return SourceEdit(self._starts[first - 1], self._starts[last], text)

    def remove(self, statement: ast.stmt) -> SourceEdit:
        """Remove a statement with the comments directly above it."""
        first = first_line(statement)
        indent = " " * statement.col_offset
        while first > 1 and self.line(first - 1).startswith(f"{indent}#"):
            first -= 1
        return self.replace_lines(first, last_line(statement))

    def _offset(self, line: int, column: int) -> int:
        text = self._lines[line - 1].encode("utf-8")[:column].decode("utf-8")
        return self._starts[line - 1] + len(text)


def first_line(statement: ast.stmt) -> int:
    """Return the number of a statement's first line, including its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """Return the number of a statement's last line."""
    assert node.end_lineno is not None
    return node.end_lineno


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements in a tree."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def names_loaded(tree: ast.AST) -> set[str]:
    """Return the names that a tree reads."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


def globals_read(statement: ast.stmt) -> set[str]:
    """Return the module's global names that one of its statements reads, without parameters of the same name."""
    tables, names = [symtable.symtable(ast.unparse(statement), "", "exec")], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_module = table.get_type() == "module"
        symbols = (symbol for symbol in table.get_symbols() if symbol.is_referenced())
        names |= {symbol.get_name() for symbol in symbols if is_module or symbol.is_global()}
    return names


def without_blank_lines(text: str) -> str:
    """Return a text with at most two consecutive blank lines."""
    return _BLANK_LINES.sub("\n\n\n", text)
