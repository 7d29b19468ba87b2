"""Fold branches: replace each test of the variant by the branch that the chosen variants take."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from repros.engine.source import Edit, Source, edit_repeatedly

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class _UndecidedError(Exception):
    """An expression that depends on more than the variant."""


def fold(text: str, chosen: Sequence[str]) -> str:
    """Return a script without the branches that no chosen variant takes.

    A test is folded if it has the same value for all of them: `variant == "fixed"`, `variant in (...)`,
    `variant.startswith(...)`, and combinations with `not`, `and` and `or`.
    """
    return edit_repeatedly(text, partial(_edits, chosen))


def _edits(chosen: Sequence[str], source: Source) -> Iterator[Edit]:
    for block in _blocks(source.tree):
        for index, statement in enumerate(block):
            if isinstance(statement, ast.If) and (answer := _answer(statement.test, chosen)) is not None:
                yield _fold_if(source, statement, answer, is_alone=len(block) == 1)
            if isinstance(statement, _ENDS) and index + 1 < len(block):
                yield Edit(source.lines(statement)[1], source.lines(block[-1])[1])
    for node in ast.walk(source.tree):
        if isinstance(node, ast.IfExp) and (answer := _answer(node.test, chosen)) is not None:
            yield Edit(*source.span(node), source.of(node.body if answer else node.orelse))
        elif isinstance(node, (ast.Compare, ast.Call)) and (answer := _answer(node, chosen)) is not None:
            yield Edit(*source.span(node), str(answer))


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements in a tree."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _fold_if(source: Source, node: ast.If, answer: bool, *, is_alone: bool) -> Edit:
    """Return the edit that leaves one branch of an `if` or `elif`."""
    (begin, end), (_, body_end) = source.lines(node), source.lines(node.body[-1])
    body, other = source.text(source.lines(node.test)[1], body_end), source.text(body_end, end)
    indent = " " * node.col_offset
    if source.of(node).startswith("elif"):
        kept = f"{indent}else:\n{body}" if answer else other
    elif answer:
        kept = _dedent(body)
    elif other.strip().startswith("elif"):
        kept = other.replace("elif", "if", 1)
    else:
        kept = _dedent(other.partition("\n")[2])
    if not kept and is_alone:
        kept = f"{indent}pass\n"
    return Edit(begin, end, kept) if kept else source.removal(node)


def _dedent(text: str) -> str:
    return "".join(line.removeprefix("    ") for line in text.splitlines(keepends=True))


def _answer(test: ast.expr, chosen: Sequence[str]) -> bool | None:
    """Return a test's value for all variants; None if the values differ, or depend on more than the variant."""
    if not any(isinstance(node, ast.Name) and node.id == "variant" for node in ast.walk(test)):
        return None
    try:
        answers = {_value(test, variant) for variant in chosen}
    except _UndecidedError:
        return None
    answer = answers.pop()
    return answer if not answers and isinstance(answer, bool) else None


def _value(node: ast.expr, variant: str) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name(id="variant"):
            return variant
        case ast.Tuple() | ast.List() | ast.Set():
            return tuple(_value(item, variant) for item in node.elts)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, variant)
        case ast.BoolOp():
            values = [_value(part, variant) for part in node.values]
            return all(values) if isinstance(node.op, ast.And) else any(values)
        case ast.Compare(ops=[operator]):
            return _compare(operator, _value(node.left, variant), _value(node.comparators[0], variant))
        case ast.Call(func=ast.Attribute(value=subject, attr="startswith" | "endswith" as name), args=[part]):
            return getattr(_value(subject, variant), name)(_value(part, variant))
    raise _UndecidedError


def _compare(operator: ast.cmpop, left: Any, right: Any) -> bool:
    match operator:
        case ast.Eq():
            return bool(left == right)
        case ast.NotEq():
            return bool(left != right)
        case ast.In():
            return left in right
        case ast.NotIn():
            return left not in right
    raise _UndecidedError
