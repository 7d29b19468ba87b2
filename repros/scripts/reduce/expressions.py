"""Passes that leave out parts of expressions: arguments, elements, calls around a value, and annotations."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from repros.engine.source import Edit
from repros.scripts.reduce.code import Code, cut
from repros.scripts.reduce.passes import Edits

_TYPES = (ast.Call, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.FunctionDef, ast.ClassDef)
Element = tuple[int, int]
"""The number of a node that has elements, in the order of the tree, and the element's."""


class Elements:
    """Each argument of a call, element of a list, tuple, set or dict, default parameter, and base of a class."""

    def reductions(self, code: Code) -> list[Element]:
        """Return the elements, the last ones of a node first: they are more often optional."""
        all_spans = ((number, _spans(code, node)) for number, node in enumerate(_nodes(code)))
        return [(number, index) for number, spans in all_spans for index in reversed(range(len(spans)))]

    def render(self, code: Code, chosen: Sequence[Element]) -> str:
        """Return the source without the elements."""
        gone: dict[int, set[int]] = defaultdict(set)
        for number, index in chosen:
            gone[number].add(index)
        nodes = _nodes(code)
        return code.apply(edit for number, indices in gone.items() for edit in _cut(code, nodes[number], indices))


class Values(Edits):
    """Each call, operator and choice as one of the values that it takes: `relu(x)` as `x`, `x.to(d)` as `x`.

    What a function of a module returns may be `None`, rather than the module.
    """

    def reductions(self, code: Code) -> list[Edit]:
        """Return an edit for each value."""
        nodes = (node for node in ast.walk(code.tree) if isinstance(node, ast.expr) and node not in code.in_text)
        modules = _modules(code.tree)
        return [
            Edit(*code.span(node), "None" if isinstance(value, ast.Name) and value.id in modules else code.of(value))
            for node in nodes
            for value in _values(node)
            if value not in code.in_text and not isinstance(value, ast.Starred | ast.Constant)
        ]


class Annotations(Edits):
    """Each annotation of a name, a parameter or a result."""

    def reductions(self, code: Code) -> list[Edit]:
        """Return an edit for each annotation."""
        return [edit for node in ast.walk(code.tree) for edit in _annotation(code, node)]


def _annotation(code: Code, node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.AnnAssign(target, _, ast.expr() as value):
            yield Edit(code.span(target)[1], code.span(value)[0], " = ")
        case ast.arg(annotation=ast.expr()):
            yield Edit(*code.span(node), node.arg)
        case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
            begin, end = code.span(returns)
            line = code.lines(node)[0]
            head = code.text(line, begin).encode()
            yield Edit(line + len(head.rpartition(b"->")[0].rstrip()), end)


def _values(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(ast.Attribute(receiver), args):
            yield from args[:2]
            if not isinstance(receiver, ast.Name) or receiver.id != "self":
                yield receiver
        case ast.Call(_, args):
            yield from args[:2]
        case ast.BinOp(left, _, right):
            yield from (left, right)
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.BoolOp(_, values):
            yield from values
        case ast.Subscript(value, _, ast.Load()):
            yield value


def _modules(tree: ast.AST) -> set[str]:
    """Return the names of the modules that a tree imports as such."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}


def _nodes(code: Code) -> list[ast.AST]:
    return [node for node in ast.walk(code.tree) if isinstance(node, _TYPES) and node not in code.in_text]


def _spans(code: Code, node: ast.AST) -> list[tuple[int, int]]:
    """Return the spans of a node's elements in the order of the text."""
    match node:
        case ast.Call():
            return sorted([*map(code.span, node.args), *map(code.span, node.keywords)])
        case ast.List() | ast.Set():
            return [code.span(element) for element in node.elts]
        case ast.Tuple() if len(node.elts) > 2:  # noqa: PLR2004 - of two, one would remain, which is no tuple
            return [code.span(element) for element in node.elts[1:]]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return [(code.span(key)[0], code.span(value)[1]) for key, value in pairs if key is not None]
        case ast.FunctionDef():
            return _defaults(code, node.args)
        case ast.ClassDef():
            return sorted([*map(code.span, node.bases), *map(code.span, node.keywords)])
    return []


def _defaults(code: Code, arguments: ast.arguments) -> list[tuple[int, int]]:
    """Return the spans of the parameters with a default, if only such parameters follow them."""
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or not arguments.defaults:
        return []
    names = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    begins = [code.span(name)[0] for name in names]
    return [(begin, code.span(value)[1]) for begin, value in zip(begins, arguments.defaults, strict=True)]


def _cut(code: Code, node: ast.AST, gone: set[int]) -> Iterator[Edit]:
    """Yield the edits that leave out elements of a node; a class without bases has no brackets."""
    spans = _spans(code, node)
    if isinstance(node, ast.ClassDef) and len(gone) == len(spans):
        head = code.text(code.span(node)[0], spans[0][0])
        begin = spans[0][0] - len(head[head.rindex("(") :].encode())
        body = min(code.lines(node.body[0])[0], code.span(node.body[0])[0])
        tail = code.text(spans[-1][1], body)
        yield Edit(begin, spans[-1][1] + len(tail[: tail.index(")") + 1].encode()))
    else:
        yield from cut(code, spans, gone)
