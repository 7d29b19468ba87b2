"""The imports of untrusted Python sources."""

from __future__ import annotations

import ast

from repros.engine.source import parse


def imports_of(source: str) -> list[str]:
    """Return the modules that a source imports at its top level, in order and without repetition.

    Imports in a `try` or in a function are optional.
    """
    names: list[str] = []
    for node in parse(source).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return list(dict.fromkeys(names))


def imported_names(source: str) -> list[tuple[str, str]]:
    """Return the names that a source imports from modules at its top level, each with its module."""
    return [
        (node.module, alias.name)
        for node in parse(source).body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    ]
