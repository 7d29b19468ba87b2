"""Passes that write a value where it is used: constants with a name, and arguments of the command line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from repros.reduce.code import Code, Edit, in_text, statements_of

_LONGEST = 40
"""Characters of a constant."""
_FLAGS = {"store_true": "False", "store_false": "True"}


class _Replacements:
    def render(self, code: Code, chosen: Sequence[tuple[Edit, ...]]) -> str:
        """Return the source with the values."""
        return code.apply(edit for unit in chosen for edit in unit)


class Constants(_Replacements):
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


class CommandLine(_Replacements):
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


class Defaults(_Replacements):
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


class Parts(_Replacements):
    """Each object of a class of the script's as one of the parts that the class makes for it."""

    def units(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return an edit for each object and part."""
        classes = {node.name: node for node in code.tree.body if isinstance(node, ast.ClassDef)}
        return [
            (Edit(*code.span(call), code.of(part)),)
            for call in ast.walk(code.tree)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in classes
            for part in _parts(classes[call.func.id])
        ]


def _parts(class_: ast.ClassDef) -> Iterator[ast.expr]:
    """Yield what a class assigns to attributes, without the parameters of its methods."""
    for function in class_.body:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            own = {each.arg for each in function.args.args}
            for statement in function.body:
                match statement:
                    case ast.Assign([ast.Attribute(ast.Name("self"))], ast.Call() as value):
                        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                        if not names & own:
                            yield value


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


def _is_short(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant | ast.Name) and len(code.of(value)) <= _LONGEST
