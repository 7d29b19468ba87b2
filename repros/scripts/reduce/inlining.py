"""Passes that write a value where it is used: constants, what is read once, and arguments of the command line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from repros.engine.source import Edit
from repros.scripts.reduce.code import Code, instead, statements_of
from repros.scripts.reduce.passes import Replacements

_LONGEST = 40
"""Characters of a constant."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FLAGS = {"store_true": "False", "store_false": "True"}


class Constants(Replacements):
    """Each name that is bound once, to a constant or to another name."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each name the edits of its uses and of its assignment."""
        stored = Counter(node.id for node in code.names if not isinstance(node.ctx, ast.Load))
        stored.update(node.arg for node in ast.walk(code.tree) if isinstance(node, ast.arg))
        reductions: list[tuple[Edit, ...]] = []
        for statement in statements_of(code.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value) if stored[name] == 1 and _is_short(code, value):
                    uses = [node for node in code.names if node.id == name and isinstance(node.ctx, ast.Load)]
                    reductions += code.exchange(uses, code.of(value), statement)
        return reductions


class Once(Replacements):
    """Each value whose name is read once before it is bound anew, where it is read, if the line stays short."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such value the edits of its use and of its assignment."""
        parameters = {node.arg for node in ast.walk(code.tree) if isinstance(node, ast.arg)}
        reductions: list[tuple[Edit, ...]] = []
        for statement in statements_of(code.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value) if name not in parameters:
                    uses = _reads(code, statement, [node for node in code.names if node.id == name])
                    if len(uses) == 1 and (edit := _in_place(code, statement, value, uses[0])):
                        reductions.append((edit, *code.gone([statement])))
        return reductions


class CommandLine(Replacements):
    """Each argument of an argparse parser as its default."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each argument the edits of its uses and of the statement that adds it."""
        parsed = {
            statement.targets[0].id
            for statement in statements_of(code.tree)
            if isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and any(isinstance(node, ast.Attribute) and "parse" in node.attr for node in ast.walk(statement.value))
        }
        reductions: list[tuple[Edit, ...]] = []
        for statement, name, value in _added(code):
            uses = [
                node
                for node in ast.walk(code.tree)
                if isinstance(node, ast.Attribute) and node.attr == name
                if isinstance(node.value, ast.Name) and node.value.id in parsed and isinstance(node.ctx, ast.Load)
            ]
            reductions += code.exchange(uses, value, statement)
        return reductions


class Defaults(Replacements):
    """Each parameter with a default as that value."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each parameter the edits of its uses, and that of the parameter."""
        reductions: list[tuple[Edit, ...]] = []
        for function in ast.walk(code.tree):
            if not isinstance(function, ast.FunctionDef) or not function.args.defaults or not function.args.args:
                continue
            name, value = function.args.args[-1], function.args.defaults[-1]
            inside = [node for statement in function.body for node in ast.walk(statement)]
            uses = [node for node in inside if isinstance(node, ast.Name) and node.id == name.arg]
            if not code.in_text.intersection(uses):
                before: list[ast.arg | ast.expr] = [*function.args.args[:-1], *function.args.defaults[:-1]]
                begin = max((code.span(argument)[1] for argument in before), default=code.span(name)[0])
                edits = (Edit(*code.span(node), code.of(value)) for node in uses)
                reductions.append((*edits, Edit(begin, code.span(value)[1])))
        return reductions


def _added(code: Code) -> Iterator[tuple[ast.stmt, str, str]]:
    """Yield the statements that add an argument, with its name and its default."""
    for statement in statements_of(code.tree):
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(attr="add_argument"), [*flags], keywords)):
                given = {word.arg: word.value for word in keywords if word.arg}
                texts = [flag.value for flag in flags if isinstance(flag, ast.Constant) and isinstance(flag.value, str)]
                if not texts:
                    continue
                long = next((text for text in texts if text.startswith("--")), texts[0])
                destination = given.get("dest")
                name = destination.value if isinstance(destination, ast.Constant) else long.lstrip("-")
                action = given.get("action")
                flag = _FLAGS.get(str(action.value)) if isinstance(action, ast.Constant) else None
                value = code.of(given["default"]) if "default" in given else flag or "None"
                yield statement, str(name).replace("-", "_"), value


def _reads(code: Code, statement: ast.Assign, names: Sequence[ast.Name]) -> list[ast.Name]:
    """Return the names that read what a statement binds: all of a name bound once, else those until the next time."""
    stores = [node for node in names if not isinstance(node.ctx, ast.Load)]
    reads = [node for node in names if isinstance(node.ctx, ast.Load)]
    if len(stores) == 1:
        return reads
    begin = code.span(statement)[1]
    # An assignment reads what its value names, and binds then.
    ends = (
        next(code.span(parent)[1] for parent in code.above(node) if isinstance(parent, ast.stmt)) for node in stores
    )
    end = min((position for position in ends if position > begin), default=len(code.source.encode()))
    return [node for node in reads if begin < code.span(node)[0] < end]


def _in_place(code: Code, statement: ast.stmt, value: ast.expr, use: ast.Name) -> Edit | None:
    """Return the edit that replaces a name by its value; None if it cannot, or the line would be long."""
    scopes = [
        next((parent for parent in code.above(node) if isinstance(parent, _SCOPES)), None) for node in (statement, use)
    ]
    if scopes[0] is not scopes[1] or statement in code.above(use) or use in code.in_text:
        return None
    edit = Edit(*code.span(use), instead(code, use, value))
    return edit if code.fits(edit) else None


def _is_short(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant | ast.Name) and len(code.of(value)) <= _LONGEST
