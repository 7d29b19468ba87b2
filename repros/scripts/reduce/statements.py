"""Passes that leave statements out."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from repros.engine.source import Block, Edit
from repros.scripts.reduce.code import Code, statements_of
from repros.scripts.reduce.passes import Edits

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete, ast.Raise)


@dataclass(frozen=True)
class Statements:
    """Each statement at a depth: 0 for those of the module, 1 for those within them, and so on."""

    depth: int

    def reductions(self, code: Code) -> list[ast.stmt]:
        """Return the statements, except a `pass`, which fills an empty block."""
        nodes = (node for node in statements_of(code.tree) if _depth(code, node) == self.depth)
        return sorted((node for node in nodes if not isinstance(node, ast.Pass)), key=lambda node: node.lineno)

    def render(self, code: Code, chosen: Sequence[ast.stmt]) -> str:
        """Return the source without statements."""
        return code.without(chosen)


class Mentions:
    """Each name with all that mentions it: an optimizer and its steps, a logger and its lines."""

    def reductions(self, code: Code) -> list[tuple[ast.stmt, ...]]:
        """Return for each name that the source binds the statements that mention it."""
        statements: dict[str, list[ast.stmt]] = defaultdict(list)
        bound = set[str]()
        for statement in statements_of(code.tree):
            if isinstance(statement, (*_SIMPLE, ast.Import, ast.ImportFrom)):
                for name in {name for node in ast.walk(statement) for name in _named(node)}:
                    statements[name].append(statement)
                bound |= {name for node in ast.walk(statement) for name in _bound(node)}
            elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
                statements[statement.name].append(statement)
                bound.add(statement.name)
        reductions = {tuple(statements[name]) for name in bound if len(statements[name]) > 1}
        return sorted(reductions, key=lambda reduction: (reduction[0].lineno, len(reduction)))

    def render(self, code: Code, chosen: Sequence[tuple[ast.stmt, ...]]) -> str:
        """Return the source without the statements."""
        return code.without({statement for reduction in chosen for statement in reduction})


class Unread:
    """Each statement that does nothing but bind names which nothing reads: what other passes leave behind."""

    def reductions(self, code: Code) -> list[ast.stmt]:
        """Return the statements, except those of a class, which a library may look up."""
        nodes = [*ast.walk(code.tree)]
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        read |= {f"self.{node.attr}" for node in nodes if isinstance(node, ast.Attribute) and _is_read(node)}
        return [
            statement
            for statement in statements_of(code.tree)
            if isinstance(statement, (ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))
            if not _all_bound(statement) & read and not isinstance(code.parents[statement], ast.ClassDef)
        ]

    def render(self, code: Code, chosen: Sequence[ast.stmt]) -> str:
        """Return the source without the statements."""
        return code.without(chosen)


class Elses(Edits):
    """The `else`, `except` and `finally` of a statement, and the names of an import."""

    def reductions(self, code: Code) -> list[Edit]:
        """Return what may be left out."""
        return [edit for node in statements_of(code.tree) for edit in _parts(code, node)]


class Decorators(Edits):
    """Each decorator."""

    def reductions(self, code: Code) -> list[Edit]:
        """Return an edit for each decorator."""
        blocks = (node for node in ast.walk(code.tree) if isinstance(node, Block))
        return [Edit(*code.lines(decorator)) for node in blocks for decorator in node.decorator_list]


class Unbound(Edits):
    """Each name that nothing reads of the result of a call, of a `with`, or of the numbers of an `enumerate`."""

    def reductions(self, code: Code) -> list[Edit]:
        """Return an edit for each such name."""
        nodes = [*ast.walk(code.tree)]
        names = [node for node in nodes if isinstance(node, ast.Name) and _is_read(node)]
        read = {node.id: code.span(node)[0] for node in sorted(names, key=code.span)}
        return [edit for node in nodes if (edit := _unbound(code, node, read))]


def _unbound(code: Code, node: ast.AST, read: Mapping[str, int]) -> Edit | None:
    """Return the edit that leaves out a name that is read nowhere behind a node."""
    match node:
        case ast.Assign([ast.Name(name)], ast.Call() as value) if read.get(name, 0) < code.span(node)[1]:
            return Edit(*code.span(node), code.of(value))
        case ast.withitem(context, ast.Name(name) as target) if name not in read:
            return Edit(code.span(context)[1], code.span(target)[1])
        case ast.For(ast.Tuple([ast.Name(number), item]) as target, ast.Call(ast.Name("enumerate"), [items])) if (
            number not in read
        ):
            return Edit(code.span(target)[0], code.span(node.iter)[1], f"{code.of(item)} in {code.of(items)}")
    return None


def _parts(code: Code, node: ast.stmt) -> Iterator[Edit]:
    if isinstance(node, ast.If | ast.For | ast.While | ast.Try) and node.orelse:
        last = (node.handlers[-1].body if isinstance(node, ast.Try) and node.handlers else node.body)[-1]
        yield Edit(code.lines(last)[1], code.lines(node.orelse[-1])[1])
    if isinstance(node, ast.Try) and node.finalbody and node.handlers:
        last = (node.orelse or node.handlers[-1].body)[-1]
        yield Edit(code.lines(last)[1], code.lines(node.finalbody[-1])[1])
    if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1:
        for alias in node.names:
            kept = [ast.unparse(other) for other in node.names if other is not alias]
            begin = f"from {'.' * node.level}{node.module or ''} " if isinstance(node, ast.ImportFrom) else ""
            yield Edit(*code.span(node), f"{begin}import {', '.join(kept)}")


def _is_read(node: ast.Attribute | ast.Name) -> bool:
    """Return whether a name, or an attribute of whatever object, is read."""
    return isinstance(node.ctx, ast.Load)


def _all_bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    return {name for node in ast.walk(statement) for name in _bound(node)}


def _depth(code: Code, node: ast.stmt) -> int:
    return sum(isinstance(parent, ast.stmt) for parent in code.above(node))


def _named(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id):
            yield id
        case ast.Attribute(ast.Name("self"), attr):
            yield f"self.{attr}"
        case ast.alias():
            yield (node.asname or node.name).partition(".")[0]


def _bound(node: ast.AST) -> Iterator[str]:
    return _named(node) if isinstance(getattr(node, "ctx", ast.Store()), ast.Store) else iter(())
