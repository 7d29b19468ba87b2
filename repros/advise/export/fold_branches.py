"""Fold branches: replace each test of the variant by the branch that the chosen variants take."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from repros.advise.export.source_edits import SourceEdit, SourceText, blocks, last_line

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class _UndecidedError(Exception):
    """An expression that depends on more than the variant."""


def fold(text: str, chosen: Sequence[str]) -> str:
    """Return a script without the branches that no chosen variant takes.

    A test is folded if it has the same value for all of them: `variant == "fixed"`, `variant in (...)`,
    `variant.startswith(...)`, and combinations with `not`, `and` and `or`.
    """
    while edit := next(_edits(SourceText(text), chosen), None):
        text = edit.apply(text)
    return text


def _edits(source: SourceText, chosen: Sequence[str]) -> Iterator[SourceEdit]:
    for block in blocks(source.tree):
        for index, statement in enumerate(block):
            if isinstance(statement, ast.If) and (answer := _answer(statement.test, chosen)) is not None:
                yield _fold_if(source, statement, answer, is_alone=len(block) == 1)
            if isinstance(statement, _ENDS) and index + 1 < len(block):
                yield source.replace_lines(last_line(statement) + 1, last_line(block[-1]))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.IfExp) and (answer := _answer(node.test, chosen)) is not None:
            yield source.replace(node, source.segment(node.body if answer else node.orelse))
        elif isinstance(node, (ast.Compare, ast.Call)) and (answer := _answer(node, chosen)) is not None:
            yield source.replace(node, str(answer))


def _fold_if(source: SourceText, node: ast.If, answer: bool, *, is_alone: bool) -> SourceEdit:
    """Return the edit that leaves one branch of an `if` or `elif`."""
    assert node.test.end_lineno is not None
    body = source.lines(node.test.end_lineno + 1, last_line(node.body[-1]))
    other = source.lines(last_line(node.body[-1]) + 1, last_line(node)) if node.orelse else ""
    indent = " " * node.col_offset
    if source.line(node.lineno).strip().startswith("elif"):
        kept = f"{indent}else:\n{body}" if answer else other
    elif answer:
        kept = _dedent(body)
    elif other.strip().startswith("elif"):
        kept = other.replace("elif", "if", 1)
    else:
        kept = _dedent(other.partition("\n")[2])
    if not kept and is_alone:
        kept = f"{indent}pass\n"
    return source.replace_lines(node.lineno, last_line(node), kept) if kept else source.remove(node)


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
