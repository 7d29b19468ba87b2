"""Passes that take a block out of its header: `with`, `if`, `for`, `try`, and a function that is called once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from repros.engine.source import Edit
from repros.scripts.reduce.code import Code, statements_of
from repros.scripts.reduce.passes import Edits, Replacements

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LEAVES_BY = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


class Unwrapped(Edits):
    """Each compound statement as what it contains."""

    def __init__(self, *, conditions: bool = True) -> None:
        """Take whether an `if` may lose its condition."""
        self._conditions = conditions

    def reductions(self, code: Code) -> list[Edit]:
        """Return an edit for each block that may replace its statement."""
        return [edit for node in statements_of(code.tree) for edit in self._edits(code, node)]

    def _edits(self, code: Code, node: ast.stmt) -> Iterator[Edit]:
        if _is_elif(code, node):
            return
        if isinstance(node, ast.If) and self._conditions:
            bodies = [node.body, node.orelse]
        elif isinstance(node, ast.With | ast.AsyncWith | ast.For | ast.While):
            bodies = [node.body]
        elif isinstance(node, ast.Try):
            bodies = [node.body, node.finalbody]
        else:
            return
        begin, end = code.lines(node)
        for body in bodies:
            if body and not _is_elif(code, body[0]):
                yield Edit(begin, end, _moved(code, body, code.indent(node)))


class Guards(Unwrapped):
    """The code that runs if the script is the main module, and that may follow the other statements."""

    def _edits(self, code: Code, node: ast.stmt) -> Iterator[Edit]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
            yield from super()._edits(code, node)


class Flattened(Unwrapped):
    """Flattens an `else` after a block that leaves, and a `with` or `if` that is alone in another."""

    def __init__(self) -> None:
        """Take nothing: no condition is lost."""

    def _edits(self, code: Code, node: ast.stmt) -> Iterator[Edit]:
        if _is_elif(code, node):
            return
        match node:
            case ast.If(_, [*_, last], [first, *_]) if isinstance(last, _LEAVES) and not _is_elif(code, first):
                yield Edit(code.lines(last)[1], code.lines(node)[1], _moved(code, node.orelse, code.indent(node)))
            case ast.If(outer, [ast.If(inner, body, []) as only], []) if not _is_elif(code, only):
                head = f"{code.indent(node)}if {_anded(outer)} and {_anded(inner)}:\n"
                yield Edit(*code.lines(node), head + _moved(code, body, code.indent(only)))
            case ast.With(outer, [ast.With(inner, body)]):
                head = f"{code.indent(node)}with {', '.join(map(ast.unparse, [*outer, *inner]))}:\n"
                yield Edit(*code.lines(node), head + _moved(code, body, code.indent(node.body[0])))


class Called(Replacements):
    """Replaces a statement that is the only call of a function by the function's body."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such function the edit of its call and that of its definition."""
        functions = [node for node in code.tree.body if isinstance(node, ast.FunctionDef)]
        return [edits for node in functions if (edits := _inlined(code, node))]


def _is_elif(code: Code, node: ast.stmt) -> bool:
    return code.of(node).startswith("elif")


def _anded(condition: ast.expr) -> str:
    """Return a condition as a part of an `and`."""
    text = ast.unparse(condition)
    return f"({text})" if isinstance(condition, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr) else text


def _inlined(code: Code, function: ast.FunctionDef) -> tuple[Edit, ...]:
    used = [node for node in code.names if node.id == function.name]
    last = function.body[-1] if isinstance(function.body[-1], ast.Return) else None
    leaves = [node for node in ast.walk(function) if isinstance(node, _LEAVES_BY) and node is not last]
    if function.decorator_list or leaves or len(used) != 1:
        return ()
    call = code.parents[used[0]]
    if not isinstance(call, ast.Call) or call.func is not used[0]:
        return ()
    statement = code.parents[call]
    bound = _bindings(code, function.args, call)
    if bound is None or not isinstance(statement, ast.Assign | ast.Expr):
        return ()
    indent, body = code.indent(statement), function.body[:-1] if last else function.body
    lines = [f"{indent}{line}\n" for line in bound]
    lines += [_moved(code, body, indent)] if body else []
    if last and last.value and isinstance(statement, ast.Assign):
        lines.append(f"{indent}{code.text(code.span(statement)[0], code.span(call)[0])}{code.of(last.value)}\n")
    return Edit(*code.lines(statement), "".join(lines)), Edit(*code.lines(function))


def _bindings(code: Code, parameters: ast.arguments, call: ast.Call) -> list[str] | None:
    """Return the assignments of a call's arguments to the parameters; None if they are not plain."""
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or parameters.posonlyargs:
        return None
    if any(isinstance(value, ast.Starred) for value in call.args) or any(word.arg is None for word in call.keywords):
        return None
    names = [parameter.arg for parameter in parameters.args]
    defaults = zip(reversed(names), reversed(parameters.defaults), strict=False)
    given = {name: code.of(value) for name, value in defaults}
    given |= {name: code.of(value) for name, value in zip(names, call.args, strict=False)}
    given |= {str(word.arg): code.of(word.value) for word in call.keywords}
    return [f"{name} = {value}" for name, value in given.items() if name != value]


def _moved(code: Code, body: Sequence[ast.stmt], indent: str) -> str:
    """Return a block's lines with another indent."""
    own = code.indent(body[0])
    lines = code.text(code.lines(body[0])[0], code.lines(body[-1])[1]).splitlines(keepends=True)
    return "".join(f"{indent}{line[len(own) :]}" if line.startswith(own) else line for line in lines)
