"""A parsed source, and the edits of its parts that passes share."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from repros.engine.source import PROBLEMS, Edit, Source

BODIES = ("body", "orelse", "finalbody")
ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp)
"""Expressions that need no parentheses, wherever they stand."""
WIDTH = 88
"""Columns of a line that passes and the layout make: the most that formatters of Python allow by default."""
_COMMA = re.compile(rb"\s*,")


class Code(Source):
    """A source whose parts passes leave out or replace."""

    @cached_property
    def in_text(self) -> set[ast.AST]:
        """The nodes within f-strings: before Python 3.12 their positions are wrong."""
        texts = (node for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr))
        return {node for text in texts for node in ast.walk(text)}

    @cached_property
    def names(self) -> list[ast.Name]:
        """The names in the source."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def behind(self, pattern: re.Pattern[bytes], at: int) -> int:
        """Return the offset behind what a pattern matches at an offset; this one if it does not match."""
        match = pattern.match(self._data, at)
        return match.end() if match else at

    def columns(self, begin: int, end: int) -> int:
        """Return the number of columns of the lines that a piece begins and ends in, without those between."""
        before = self._data[:begin].rpartition(b"\n")[2]
        after = self._data[end:].partition(b"\n")[0]
        return len((before + self._data[begin:end] + after).decode())

    def fits(self, edit: Edit) -> bool:
        """Return whether the lines that an edit begins and ends in are, with it, no longer than :data:`WIDTH`."""
        return self.columns(edit.begin, edit.end) - (edit.end - edit.begin) + len(edit.text) <= WIDTH

    def without(self, statements: Iterable[ast.stmt]) -> str:
        """Return the source without statements."""
        return self.apply(self.gone(statements))

    def gone(self, statements: Iterable[ast.stmt]) -> Iterator[Edit]:
        """Yield the edits that leave statements out; a block that would be empty gets a `pass`."""
        gone = set(statements)
        for statement in gone:
            body = self._siblings(statement)
            is_needed = body is not None and statement is body[0] and gone.issuperset(body)
            yield Edit(*self.lines(statement), f"{self.indent(statement)}pass\n" if is_needed else "")

    def exchange(self, uses: Sequence[ast.expr], text: str, statement: ast.stmt) -> Iterator[tuple[Edit, ...]]:
        """Yield the edits, if they can be made, that write a text for each use of a name and remove its statement."""
        if self.in_text.isdisjoint(uses):
            yield (*(Edit(*self.span(use), text) for use in uses), *self.gone([statement]))

    def _siblings(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """Return the block that a statement is in; None for the module's, which may be empty, and an `elif`."""
        parent = self.parents[statement]
        if isinstance(parent, ast.Module) or self.text(*self.span(statement)).startswith("elif"):
            return None
        bodies = (getattr(parent, name, None) for name in BODIES)
        return next((body for body in bodies if isinstance(body, list) and statement in body), None)


def read(source: str) -> Code | None:
    """Return a source as code; None if it is no Python that compiles. Its warnings are for nobody: it may never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "script", "exec", dont_inherit=True)
        return Code(source)
    except PROBLEMS:
        return None


def statements_of(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a tree, the outer ones first."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def cut(code: Code, spans: Sequence[tuple[int, int]], gone: Collection[int]) -> Iterator[Edit]:
    """Yield the edits that leave out elements with their commas.

    Args:
        code: the source.
        spans: the spans of all elements between two brackets, in the order of the text.
        gone: the numbers of those to leave out.
    """
    kept = [index for index in range(len(spans)) if index not in gone]
    for index in sorted(gone):
        begin, end = spans[index]
        if index + 1 < len(spans):
            yield Edit(begin, spans[index + 1][0])
        elif kept and kept[-1] < index:
            yield Edit(spans[kept[-1]][1], end)
        else:
            yield Edit(begin, code.behind(_COMMA, end))


def instead(code: Code, use: ast.expr, value: ast.expr, text: str | None = None) -> str:
    """Return a value's source, or the text given for it, as a replacement of a use of its name.

    Args:
        code: the source.
        use: the name or attribute that it replaces.
        value: what it is, which decides on parentheses.
        text: its source, if it is another than the value's own.
    """
    parent = code.parents[use]
    is_alone = isinstance(value, ATOMS) or isinstance(parent, ast.keyword | ast.Assign | ast.Return | ast.Expr)
    is_alone |= isinstance(parent, ast.Call) and use is not parent.func
    own = code.of(value) if text is None else text
    # Its lines may be one expression only within their brackets.
    own = ast.unparse(ast.parse(f"({own})", mode="eval")) if "\n" in own else own
    return own if is_alone else f"({own})"
