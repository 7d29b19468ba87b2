"""Undefined names of a source: a candidate with more of them than its origin is rejected without a run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from repros.engine.source import Block

_BUILTINS = frozenset({*dir(builtins), "__file__", "__name__", "__doc__", "__spec__"})


@dataclass(frozen=True)
class SourceNames:
    """The names of a source."""

    undefined: frozenset[str]
    """Read but not bound anywhere."""
    own: frozenset[str]
    """Attributes that are set on `self` or in a class, and methods."""
    read: frozenset[str]
    """Attributes that are read from `self`."""

    def lacks(self, origin: SourceNames) -> bool:
        """Return whether it reads a name that only the origin defines."""
        return bool(self.undefined - origin.undefined or (self.read & origin.own) - self.own)


def attributes_of(block: Block) -> Iterator[tuple[str, ast.Assign]]:
    """Yield the attributes that a class body assigns, with these statements; none for a function."""
    for statement in block.body if isinstance(block, ast.ClassDef) else ():
        match statement:
            case ast.Assign([ast.Name(name)]):
                yield name, statement


def names_of(tree: ast.AST) -> SourceNames:
    """Return the names of a tree, without regard to scopes."""
    bound, loaded, own, read = set[str](), set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id, ast.Load()):
                loaded.add(id)
            case ast.Name(id):
                bound.add(id)
            case ast.Attribute(ast.Name("self"), attr, ast.Load()):
                read.add(attr)
            case ast.Attribute(ast.Name("self"), attr):
                own.add(attr)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
                own |= {node.name, *(name for name, _ in attributes_of(node))}
            case ast.arg():
                bound.add(node.arg)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case _:
                pass
    has_all = any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))
    undefined = frozenset() if has_all else frozenset(loaded - bound - _BUILTINS)
    return SourceNames(undefined, frozenset(own), frozenset(read))
