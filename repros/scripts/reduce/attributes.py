"""Passes over the script's own classes: their attributes, classes that add nothing, and the modules they hold."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from repros.engine.source import Edit
from repros.scripts.reduce.code import WIDTH, Code, instead
from repros.scripts.reduce.names import attributes_of
from repros.scripts.reduce.passes import Replacements

_ORDERED = "from collections import OrderedDict\n"


class SelfValues(Replacements):
    """Each attribute that a class sets once as its value, where `self` reads it: once, or anywhere if it is an atom."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such attribute the edits of its uses and of its assignment."""
        classes = [node for node in ast.walk(code.tree) if isinstance(node, ast.ClassDef)]
        foreign = {node.attr for node in ast.walk(code.tree) if isinstance(node, ast.Attribute) and not _is_own(node)}
        return [reduction for class_ in classes for reduction in _written(code, class_, foreign)]


class OfClass(Replacements):
    """Each `__init__` that only sets attributes, to values without a name of its own, as attributes of the class."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return an edit for each such method."""
        reductions: list[tuple[Edit, ...]] = []
        for node in ast.walk(code.tree):
            match node:
                case ast.FunctionDef("__init__", ast.arguments(args=[self_]), body) if not node.decorator_list:
                    lines = [_of_class(code, statement, self_.arg, code.indent(node)) for statement in body]
                    if all(line is not None for line in lines) and any(lines):
                        reductions.append((Edit(*code.lines(node), "".join(filter(None, lines))),))
        return reductions


class Subclasses(Replacements):
    """Each class that adds nothing to its only base as that base."""

    def reductions(self, code: Code) -> list[tuple[Edit, ...]]:
        """Return for each such class the edits of its uses and that of its definition."""
        reductions: list[tuple[Edit, ...]] = []
        for node in code.tree.body:
            match node:
                case ast.ClassDef(name, [ast.Name() | ast.Attribute() as base], [], [ast.Pass()], []):
                    uses = [use for use in code.names if use.id == name]
                    reductions += code.exchange(uses, code.of(base), node)
        return reductions


def _written(code: Code, class_: ast.ClassDef, foreign: set[str]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits for each attribute of a class, except those that other objects than `self` also have."""
    attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
    for node in ast.walk(class_):
        if isinstance(node, ast.Attribute) and _is_own(node) and node.attr not in foreign:
            attributes[node.attr].append(node)
    for name, nodes in attributes.items():
        reads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
        stores = [code.parents[node] for node in nodes if node not in reads]
        stores += [statement for attribute, statement in attributes_of(class_) if attribute == name]
        match stores:
            case [ast.Assign([_], value) as statement] if reads and not code.in_text.intersection(nodes):
                edits = tuple(Edit(*code.span(read), instead(code, read, value)) for read in reads)
                if _may_stand(code, statement, value, reads) and all(map(code.fits, edits)):
                    yield (*edits, *code.gone([statement]))


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _may_stand(code: Code, statement: ast.stmt, value: ast.expr, reads: list[ast.Attribute]) -> bool:
    """Return whether a value means the same where an attribute is read: there, or without names of its function."""
    if len(reads) > 1 and not isinstance(value, ast.Constant | ast.Name):
        return False
    home = _function(code, statement)
    if all(_function(code, read) is home for read in reads):
        return True
    return not _locals(home) & {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def _function(code: Code, node: ast.AST) -> ast.AST | None:
    return next((parent for parent in code.above(node) if isinstance(parent, ast.FunctionDef)), None)


def _locals(function: ast.AST | None) -> set[str]:
    if function is None:
        return set()
    nodes = [*ast.walk(function)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _of_class(code: Code, statement: ast.stmt, self_name: str, indent: str) -> str | None:
    """Return the line of a class for one of `__init__`; empty for the call of the base's, None if there is no such."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"), [], [])) | ast.Pass():
            return ""
        case ast.Assign([ast.Attribute(ast.Name(name), attr)], value) if name == self_name:
            if not any(isinstance(node, ast.Name) and node.id == self_name for node in ast.walk(value)):
                return f"{indent}{attr} = {code.of(value)}\n"
    return None


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
        names = {node.id for node in code.names}
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
