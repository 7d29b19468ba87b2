"""Passes that write a value where it is used: constants, what is read once, and arguments of the command line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from repros.reduce.code import WIDTH, Code, Edit, in_text, statements_of

_LONGEST = 40
"""Characters of a constant."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp)
_FLAGS = {"store_true": "False", "store_false": "True"}


class Replacements:
    """Passes whose units are the edits of the uses of something, and that of its definition."""

    def render(self, code: Code, chosen: Sequence[tuple[Edit, ...]]) -> str:
        """Return the source with the values."""
        return code.apply(edit for unit in chosen for edit in unit)


class Constants(Replacements):
    """Each name that is bound once, to a constant or to another name."""

    def units(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each name the edits of its uses and of its assignment."""
        texts = in_text(code.tree)
        names = [node for node in ast.walk(code.tree) if isinstance(node, ast.Name)]
        stored = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
        stored.update(node.arg for node in ast.walk(code.tree) if isinstance(node, ast.arg))
        units = []
        for statement in statements_of(code.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value) if stored[name] == 1 and _is_short(code, value):
                    uses = [node for node in names if node.id == name and isinstance(node.ctx, ast.Load)]
                    if not texts.intersection(uses):
                        edits = (Edit(*code.span(node), code.of(value)) for node in uses)
                        units.append((*edits, Edit(*code.lines(statement))))
        return units


class Once(Replacements):
    """Each value whose name is bound once and read once, in the place where it is read, if the line stays short."""

    def units(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such name the edits of its use and of its assignment."""
        names = [node for node in ast.walk(code.tree) if isinstance(node, ast.Name)]
        bound = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
        bound.update(node.arg for node in ast.walk(code.tree) if isinstance(node, ast.arg))
        read = {name: [node for node in names if node.id == name and isinstance(node.ctx, ast.Load)] for name in bound}
        texts = in_text(code.tree)
        units: list[tuple[Edit, ...]] = []
        for statement in statements_of(code.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value) if bound[name] == len(read[name]) == 1:
                    use = read[name][0]
                    text = "" if use in texts else _in_place(code, statement, value, use)
                    if text:
                        units.append((Edit(*code.span(use), text), Edit(*code.lines(statement))))
        return units


class CommandLine(Replacements):
    """Each argument of an argparse parser as its default."""

    def units(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each argument the edits of its uses and of the statement that adds it."""
        texts = in_text(code.tree)
        parsed = {
            statement.targets[0].id
            for statement in statements_of(code.tree)
            if isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and any(isinstance(node, ast.Attribute) and "parse" in node.attr for node in ast.walk(statement.value))
        }
        units = []
        for statement, name, value in _added(code):
            uses = [
                node
                for node in ast.walk(code.tree)
                if isinstance(node, ast.Attribute) and node.attr == name
                if isinstance(node.value, ast.Name) and node.value.id in parsed and isinstance(node.ctx, ast.Load)
            ]
            if not texts.intersection(uses):
                edits = (Edit(*code.span(node), value) for node in uses)
                units.append((*edits, Edit(*code.lines(statement))))
        return units


class Defaults(Replacements):
    """Each parameter with a default as that value."""

    def units(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each parameter the edits of its uses, and that of the parameter."""
        texts = in_text(code.tree)
        units = []
        for function in ast.walk(code.tree):
            if not isinstance(function, ast.FunctionDef) or not function.args.defaults:
                continue
            name, value = function.args.args[-1], function.args.defaults[-1]
            inside = [node for statement in function.body for node in ast.walk(statement)]
            uses = [node for node in inside if isinstance(node, ast.Name) and node.id == name.arg]
            if not texts.intersection(uses):
                before: list[ast.arg | ast.expr] = [*function.args.args[:-1], *function.args.defaults[:-1]]
                begin = max((code.span(each)[1] for each in before), default=code.span(name)[0])
                edits = (Edit(*code.span(node), code.of(value)) for node in uses)
                units.append((*edits, Edit(begin, code.span(value)[1])))
        return units


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


def _in_place(code: Code, statement: ast.stmt, value: ast.expr, use: ast.Name) -> str:
    """Return a value as it stands in the place of a name; empty if it cannot stand there, or the line would be long."""
    scopes = [next((each for each in code.above(node) if isinstance(each, _SCOPES)), None) for node in (statement, use)]
    if scopes[0] is not scopes[1] or statement in code.above(use):
        return ""
    (begin, end), parent = code.span(use), code.parents[use]
    is_alone = isinstance(value, _ATOMS) or isinstance(parent, ast.keyword | ast.Assign | ast.Return | ast.Expr)
    is_alone |= isinstance(parent, ast.Call) and use is not parent.func
    text = ast.unparse(value) if len(code.of(value).splitlines()) > 1 else code.of(value)
    text = text if is_alone else f"({text})"
    return text if code.columns(begin, end) + len(text) - (end - begin) <= WIDTH else ""


def _is_short(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant | ast.Name) and len(code.of(value)) <= _LONGEST
