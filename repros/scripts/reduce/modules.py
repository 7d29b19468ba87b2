"""Passes that replace objects of the script's classes by their parts: a model by its layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from repros.scripts.reduce.code import WIDTH, Code, Edit
from repros.scripts.reduce.passes import Replacements

_ORDERED = "from collections import OrderedDict\n"


class Parts(Replacements):
    """Each object of a class of the script's as one of the parts that the class makes for it."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return an edit for each object and part."""
        return [
            (Edit(*code.span(call), code.of(part)),) for call, class_ in _objects(code) for _, part in _parts(class_)
        ]


class Chains(Replacements):
    """Each object of a module class as a `Sequential` of the parts that the class makes, which keep their names."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each object its edit, that of a line before it, and that of an import."""
        names = {node.id for node in ast.walk(code.tree) if isinstance(node, ast.Name)}
        added = () if _ORDERED in code.source else (_first_line(code),)
        reductions = []
        for call, class_ in _objects(code):
            bases = [code.of(base) for base in class_.bases]
            parts = [f"{name}={ast.unparse(part)}" for name, part in _parts(class_)]
            if parts and len(bases) == 1 and bases[0].endswith(".Module"):
                name = f"{class_.name.lower()}{'_' * (class_.name.lower() in names)}"
                statement = next(parent for parent in code.above(call) if isinstance(parent, ast.stmt))
                line = _chain(code.indent(statement), name, bases[0].removesuffix("Module"), parts)
                begin, _ = code.lines(statement)
                reductions.append((*added, Edit(begin, begin, line), Edit(*code.span(call), name)))
        return reductions


def _chain(indent: str, name: str, package: str, parts: list[str]) -> str:
    """Return the lines that make a chain and give it a name."""
    begin = f"{indent}{name} = {package}Sequential(OrderedDict("
    line = f"{begin}{', '.join(parts)}))\n"
    if len(line) <= WIDTH:
        return line
    return "".join([f"{begin}\n", *(f"{indent}    {part},\n" for part in parts), f"{indent}))\n"])


def _first_line(code: Code) -> Edit:
    """Return the edit that adds the import of what a chain needs, where an import may stand."""
    later = (
        statement
        for statement in code.tree.body
        if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__"
    )
    begin = next((code.lines(statement)[0] for statement in later), 0)
    return Edit(begin, begin, _ORDERED)


def _objects(code: Code) -> Iterator[tuple[ast.Call, ast.ClassDef]]:
    """Yield the calls of the script's own classes."""
    classes = {node.name: node for node in code.tree.body if isinstance(node, ast.ClassDef)}
    for call in ast.walk(code.tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in classes:
            yield call, classes[call.func.id]


def _parts(class_: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a class assigns to attributes, with their names, without what has parameters of its methods."""
    for function in class_.body:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            own = {parameter.arg for parameter in function.args.args}
            for statement in function.body:
                match statement:
                    case ast.Assign([ast.Attribute(ast.Name("self"), name)], ast.Call() as value):
                        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                        if not names & own:
                            yield name, value
