"""Split of a plain script into definitions and a body, for the code of a repro."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repros.engine.source import Block, Source, parse

_NAMES = ("failing", "fixed", "main", "VARIANTS")
"""Names that a repro's script defines itself."""


@dataclass(frozen=True)
class ScriptParts:
    """The two parts of a script."""

    definitions: str
    """Imports, functions and classes."""
    body: str
    """The remaining statements, without indent."""


def split_script(source: str, *, several_ranks: bool) -> ScriptParts:
    """Return a script's parts.

    A function or class whose name a repro's script defines itself, such as `main`, is renamed.

    Args:
        source: source of the script.
        several_ranks: whether torchrun launches it.
    """
    script = Source(_renamed(source))
    imports, definitions, rest = [], [], []
    for statement in script.tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
        elif isinstance(statement, Block):
            definitions.append(statement)
        elif isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'":
            rest += statement.body
        elif not _is_docstring(statement):
            rest.append(statement)
    code = "\n\n\n".join(_text(script, statement) for statement in definitions)
    lines = [*_import_lines(imports, several_ranks=several_ranks), *(["\n", code] if code else [])]
    shared = sorted(_bound(rest) & _read(definitions))
    first = [f"global {', '.join(shared)}"] if shared else []
    if re.search(r"\bparse_(?:known_)?args\(|\bsys\.argv\b", script.source):
        first.append("sys.argv[1:] = []  # variant, strategy and accelerator are not for this code")
    first += [_text(script, statement) for statement in rest]
    return ScriptParts("\n".join(lines), "\n".join(first) or "pass")


def _renamed(source: str) -> str:
    """Return a source whose definitions do not use the reserved names."""
    defined = {statement.name for statement in parse(source).body if isinstance(statement, Block)}
    taken = defined.intersection(_NAMES)
    lines, before = source.split("\n"), ""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if taken else ():
        if token.type == tokenize.NAME and token.string in taken and before != ".":
            found.append(token)
        before = token.string
    for token in reversed(found):
        (row, begin), (_, end) = token.start, token.end
        lines[row - 1] = f"{lines[row - 1][:begin]}{token.string}_of_script{lines[row - 1][end:]}"
    return "\n".join(lines)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _text(source: Source, statement: ast.stmt) -> str:
    """Return the text of a statement with its decorators, dedented, or unparsed where dedenting would change it."""
    (begin, end), (_, own_end) = source.lines(statement), source.span(statement)
    indent, behind = " " * statement.col_offset, source.text(own_end, end)
    own = source.text(begin, end).splitlines()
    shares_a_line = source.indent(statement).strip() or behind.partition("#")[0].strip()
    if not shares_a_line and all(line.startswith(indent) or not line.strip() for line in own):
        return "\n".join(line[len(indent) :] for line in own)
    return ast.unparse(statement)


def _import_lines(imports: Sequence[ast.stmt], *, several_ranks: bool) -> Iterator[str]:
    """Yield imports in the formatter's order: standard library, blank line, others."""
    needed = ["import sys", *(["import os", "from torch.distributed import run"] if several_ranks else [])]
    singles = [line for statement in imports for line in _single(statement)]
    groups: dict[bool, list[str]] = {True: [], False: []}
    futures = [line for line in singles if line.startswith("from __future__ ")]
    for line in dict.fromkeys([*singles, *needed]):
        if line not in futures:
            groups[line.split()[1].partition(".")[0] in sys.stdlib_module_names].append(line)
    blocks = [block for block in (futures, *(_sorted(groups[is_own]) for is_own in (True, False))) if block]
    for number, block in enumerate(blocks):
        yield from ([""] if number else [])
        yield from block


def _single(statement: ast.stmt) -> Iterator[str]:
    """Yield one line per imported module."""
    if isinstance(statement, ast.Import):
        yield from (ast.unparse(ast.Import([alias])) for alias in statement.names)
    else:
        yield ast.unparse(statement)


def _sorted(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: (line.startswith("from "), line.split()[1].lower()))


def _bound(statements: Sequence[ast.stmt]) -> set[str]:
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _read(definitions: Sequence[ast.stmt]) -> set[str]:
    """Return the module names that definitions read, which must therefore stay global."""
    found = set[str]()
    for definition in definitions:
        nodes = [*ast.walk(definition)]
        own = {node.arg for node in nodes if isinstance(node, ast.arg)} | _bound([definition])
        found |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)} - own
    return found
