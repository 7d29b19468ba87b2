"""Passes over imports: names by the path of a module that is imported anyway, and imports from one module as one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from repros.engine.source import Edit
from repros.scripts.reduce.code import WIDTH, Code
from repros.scripts.reduce.passes import Replacements


class Paths(Replacements):
    """Each import from a package that another import names, with the path from that name where its own are used."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such import the edits of the uses of its names, and its own."""
        reductions: list[tuple[Edit, ...]] = []
        for statement in code.tree.body:
            paths = _paths(code, statement)
            uses = [node for node in code.names if node.id in paths]
            if not paths or code.in_text.intersection(uses) or any(not isinstance(node.ctx, ast.Load) for node in uses):
                continue
            edits = tuple(Edit(*code.span(node), paths[node.id]) for node in uses)
            if all(map(code.fits, edits)):
                reductions.append((*edits, *code.gone([statement])))
        return reductions


class Merged(Replacements):
    """Each import of names from a module that names come from already, as one with that."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return the edits of both imports."""
        first: dict[str, ast.ImportFrom] = {}
        reductions: list[tuple[Edit, ...]] = []
        for statement in code.tree.body:
            match statement:
                case ast.ImportFrom(str(module), names, 0) if module in first:
                    both = [*first[module].names, *names]
                    line = f"from {module} import {', '.join(map(ast.unparse, both))}"
                    if len(line) <= WIDTH:
                        reductions.append((Edit(*code.span(first[module]), line), Edit(*code.lines(statement))))
                case ast.ImportFrom(str(module), _, 0):
                    first[module] = statement
        return reductions


def _paths(code: Code, statement: ast.stmt) -> dict[str, str]:
    """Return the names that an import binds, with their paths from a name that another import binds to a package."""
    match statement:
        case ast.ImportFrom(str(module), names, 0):
            bound = {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
        case ast.Import([ast.alias(module, str(name))]):
            bound = {name: module}
        case _:
            return {}
    roots = dict(_roots(code, statement))
    paths = {}
    for name, path in bound.items():
        package = max((root for root in roots if path.startswith(f"{root}.")), key=len, default=None)
        if package is None:
            return {}
        paths[name] = roots[package] + path.removeprefix(package)
    return paths


def _roots(code: Code, statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the modules that the other imports of the script give a name to, with these names."""
    for other in code.tree.body:
        if isinstance(other, ast.Import) and other is not statement:
            for alias in other.names:
                yield (alias.name, alias.asname) if alias.asname else (alias.name.partition(".")[0],) * 2


def imports_of(source: str) -> list[str]:
    """Return the import statements of a source, in its order."""
    nodes = ast.walk(Code(source).tree)
    return [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
