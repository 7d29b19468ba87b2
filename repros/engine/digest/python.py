"""The normal form of a Python module: its code, without comments, docstrings, layout and paths of imports.

It is built from the syntax tree and is the same on every Python from 3.11 on: empty fields of newer versions are
omitted, and the literal parts of an f-string, which versions split differently, are joined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

Bindings = Mapping[str, str]
"""The replacement of each imported name, independent of the path of the imported module."""

ResolveImport = Callable[[ast.ImportFrom], Bindings | None]
"""Maps the names in an import statement to their replacements; None for an import from outside the project."""

_IGNORED_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}


def normal_form(tree: ast.Module, resolve: ResolveImport) -> str:
    """Return the code of a module as a text that is independent of prose, layout and locations of modules.

    Imports from within the project are omitted; names that they bind are replaced.

    Args:
        tree: the parsed module.
        resolve: distinguishes the project's imports from others.
    """
    bindings: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            bindings.update(resolve(node) or {})
    return "".join(_Writer(bindings, resolve).write(tree))


class _Writer:
    """Serialises syntax trees of one module."""

    def __init__(self, bindings: Bindings, resolve: ResolveImport) -> None:
        self._bindings = bindings
        self._resolve = resolve

    def write(self, value: object) -> Iterator[str]:
        """Yield the text of a node, a list of nodes or a plain value."""
        match value:
            case ast.Constant():
                yield repr(value.value)
            case ast.Name() if value.id in self._bindings:
                yield f"<{self._bindings[value.id]}>"
            case ast.JoinedStr():
                yield from self._fields("JoinedStr", {"values": _joined(value.values)})
            case ast.AST():
                fields = {name: item for name, item in ast.iter_fields(value) if name not in _IGNORED_FIELDS}
                yield from self._fields(type(value).__name__, fields)
            case list():
                yield "["
                for item in value:
                    if not self._is_ignored(item):
                        yield from self.write(item)
                        yield ","
                yield "]"
            case _:
                yield repr(value)

    def _fields(self, name: str, fields: Mapping[str, object]) -> Iterator[str]:
        yield f"{name}("
        for field, value in fields.items():
            if value is not None and value != []:
                yield f"{field}="
                yield from self.write(value)
                yield " "
        yield ")"

    def _is_ignored(self, item: object) -> bool:
        """Return whether a statement is ignored: a bare string, `pass`, an import from within the project."""
        if isinstance(item, ast.Expr):
            return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
        if isinstance(item, ast.ImportFrom):
            return self._resolve(item) is not None
        return isinstance(item, ast.Pass)


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Join adjacent literal parts of an f-string and omit empty ones."""
    joined: list[ast.expr] = []
    for literal, parts in groupby(values, lambda part: isinstance(part, ast.Constant)):
        if not literal:
            joined += parts
        elif text := "".join(str(part.value) for part in parts if isinstance(part, ast.Constant)):
            joined.append(ast.Constant(text))
    return joined
