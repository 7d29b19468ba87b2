"""Passes over the script's own functions and their calls: parameters with their arguments, and returned values."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repros.engine.source import Edit
from repros.scripts.reduce.code import Code, cut, instead
from repros.scripts.reduce.passes import Replacements

_LONGEST = 40
"""Most characters of a value that replaces several calls."""
Function = ast.FunctionDef | ast.Lambda
Removal = tuple[int, int]
"""The number of a function in the order of the tree, and that of its parameter."""


@dataclass(frozen=True)
class _Called:
    """A function of the script's with all its calls."""

    function: Function
    calls: tuple[ast.Call, ...]
    is_method: bool
    """Whether calls leave the first parameter out."""

    @property
    def names(self) -> list[str]:
        """The parameters that a call gives."""
        return [parameter.arg for parameter in self.function.args.args][self.is_method :]

    def given(self, call: ast.Call) -> dict[str, ast.expr] | None:
        """Return the arguments of a call by parameter, without those that have their default; None if not all fit."""
        arguments = dict(zip(self.names, call.args, strict=False))
        arguments |= {word.arg: word.value for word in call.keywords if word.arg}
        is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        is_whole = len(arguments) == len(call.args) + len(call.keywords) and set(arguments) <= set(self.names)
        return arguments if is_whole and not is_starred else None


class Parameters:
    """Each parameter with its argument in all calls: unread ones, and those that always get one constant or global."""

    def reductions(self, code: Code) -> list[Removal]:
        """Return the parameters, the last ones of a function first."""
        return [
            (number, index)
            for number, called in enumerate(_called(code))
            for index in reversed(range(len(called.names)))
            if _may_go(code, called, called.names[index])
        ]

    def render(self, code: Code, chosen: Sequence[Removal]) -> str:
        """Return the source without the parameters and their arguments."""
        gone: dict[int, set[int]] = defaultdict(set)
        for number, index in chosen:
            gone[number].add(index)
        functions = [*_called(code)]
        return code.apply(
            edit for number, indices in gone.items() for edit in _without(code, functions[number], indices)
        )


class Returned(Replacements):
    """Replaces the calls of functions that only return a value by that value."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such function the edits of its calls and that of its definition."""
        return [edits for called in _called(code) if (edits := _as_value(code, called))]


def _called(code: Code) -> Iterator[_Called]:
    """Yield the script's functions that are only called, and not with `*` or in an f-string.

    A method counts by its name, `__init__` by that of its class.
    """
    nodes = [*ast.walk(code.tree)]
    uses: dict[str, list[ast.AST]] = defaultdict(list)
    methods: dict[str, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        match node:
            case ast.Name(name):
                uses[name].append(node)
            case ast.Attribute(_, name):
                methods[name].append(node)
    for node in nodes:
        match node:
            case ast.FunctionDef(name) if isinstance(code.parents[node], ast.Module):
                used, function, is_method = uses[name], node, False
            case ast.ClassDef(name, [*_], _, body) if init := _init(body):
                used, function, is_method = uses[name], init, True
            case ast.FunctionDef(name) if isinstance(code.parents[node], ast.ClassDef) and name != "__init__":
                used, function, is_method = methods[name], node, True
            case ast.Assign([ast.Name(name)], ast.Lambda() as function):
                used, is_method = [use for use in uses[name] if use is not node.targets[0]], False
            case _:
                continue
        calls = tuple(call for use in used if isinstance(call := code.parents[use], ast.Call) and call.func is use)
        called = _Called(function, calls, is_method)
        others = function.args.vararg or function.args.kwarg or function.args.kwonlyargs or function.args.posonlyargs
        is_read = all(called.given(call) is not None for call in calls) and not code.in_text.intersection(calls)
        if len(calls) == len(used) and is_read and not others and not getattr(function, "decorator_list", None):
            yield called


def _init(body: Sequence[ast.stmt]) -> ast.FunctionDef | None:
    return next(
        (statement for statement in body if isinstance(statement, ast.FunctionDef) and statement.name == "__init__"),
        None,
    )


def _uses(function: Function, name: str) -> list[ast.Name]:
    body = function.body if isinstance(function.body, list) else [function.body]
    return [
        node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name
    ]


def _may_go(code: Code, called: _Called, name: str) -> bool:
    """Return whether a parameter is unread, or may be written as what all calls give."""
    uses = _uses(called.function, name)
    is_only_read = all(isinstance(use.ctx, ast.Load) for use in uses) and not code.in_text.intersection(uses)
    return not uses or (is_only_read and _argument(code, called, name) is not None)


def _argument(code: Code, called: _Called, name: str) -> ast.expr | None:
    """Return the constant or the global that all calls give for a parameter; None if they give anything else."""
    values = [(called.given(call) or {}).get(name) for call in called.calls]
    first = values[0] if values else None
    if first is None or any(value is None or code.of(value) != code.of(first) for value in values):
        return None
    is_global = isinstance(first, ast.Name) and first.id in _global_names(code.tree)
    return first if isinstance(first, ast.Constant) or is_global else None


def _global_names(tree: ast.Module) -> set[str]:
    """Return what the statements of the module itself bind."""
    bound = set[str]()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                bound.add(name)
            case ast.Import(names) | ast.ImportFrom(_, names):
                bound |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case ast.Assign(targets):
                bound |= {target.id for target in targets if isinstance(target, ast.Name)}
    return bound


def _without(code: Code, called: _Called, gone: set[int]) -> Iterator[Edit]:
    """Yield the edits of a function and its calls that leave parameters out."""
    arguments, names = called.function.args, called.names
    first = len(arguments.args) - len(arguments.defaults)
    ends: list[ast.arg | ast.expr] = [*arguments.args[:first], *arguments.defaults]
    spans = [(code.span(argument)[0], code.span(end)[1]) for argument, end in zip(arguments.args, ends, strict=True)]
    yield from cut(code, spans, {index + called.is_method for index in gone})
    for index in gone:
        for use in _uses(called.function, names[index]):
            if value := _argument(code, called, names[index]):
                yield Edit(*code.span(use), instead(code, use, value))
    for call in called.calls:
        given: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=code.span)
        by_name = [
            argument.arg if isinstance(argument, ast.keyword) else names[index] for index, argument in enumerate(given)
        ]
        left_out = {index for index, name in enumerate(by_name) if name in {names[removed] for removed in gone}}
        yield from cut(code, [*map(code.span, given)], left_out)


def _as_value(code: Code, called: _Called) -> tuple[Edit, ...]:
    """Return the edits that replace a function's calls by its value; none if it does more, or grows much."""
    function = called.function
    value = function.body
    if isinstance(value, list):
        match value:
            case [ast.Return(ast.expr() as returned)]:
                value = returned
            case _:
                return ()
    inner = {id(node) for call in called.calls for node in ast.walk(call) if node is not call}
    is_long = len(called.calls) > 1 and len(code.of(value)) > _LONGEST
    if called.is_method or not called.calls or is_long or any(id(call) in inner for call in called.calls):
        return ()
    if function.args.defaults or code.in_text.intersection(ast.walk(value)):
        return ()
    edits = []
    for call in called.calls:
        given = called.given(call) or {}
        edit = Edit(*code.span(call), instead(code, call, value, _filled(code, called, value, given)))
        if set(given) != set(called.names) or not code.fits(edit):
            return ()
        edits.append(edit)
    statement = function if isinstance(function, ast.FunctionDef) else code.parents[function]
    return (*edits, *code.gone([statement])) if isinstance(statement, ast.stmt) else ()


def _filled(code: Code, called: _Called, value: ast.expr, given: dict[str, ast.expr]) -> str:
    """Return the source of a function's value with a call's arguments."""
    begin, end = code.span(value)
    uses = [use for name in called.names for use in _uses(called.function, name) if name in given]
    parts, at = [], begin
    for use in sorted(uses, key=code.span):
        first, last = code.span(use)
        parts += [code.text(at, first), instead(code, use, given[use.id])]
        at = last
    return "".join([*parts, code.text(at, end)])
