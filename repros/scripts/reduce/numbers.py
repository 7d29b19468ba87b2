"""Smaller numbers: steps, layers, sizes and ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from repros.scripts.reduce.code import Code, Edit, in_text

_LARGEST = 10**12


def groups(code: Code) -> Iterator[tuple[int, list[ast.Constant]]]:
    """Yield each number above 1 with all its nodes, then, if there are several, with each alone; large ones first.

    A size may be written several times, which must agree.
    """
    texts = in_text(code.tree)
    nodes: dict[int, list[ast.Constant]] = defaultdict(list)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node not in texts:
            nodes[node.value].append(node)
    large = sorted((number for number in nodes if 1 < number < _LARGEST), reverse=True)
    yield from ((number, nodes[number]) for number in large)
    for number in large:
        if len(nodes[number]) > 1:
            yield from ((number, [node]) for node in nodes[number])


def smaller(number: int) -> list[int]:
    """Return the numbers to try instead of a number, the smallest first: 1, 2 and its half."""
    return [candidate for candidate in dict.fromkeys((1, 2, number // 2)) if candidate < number]


def render(code: Code, nodes: list[ast.Constant], number: int) -> str:
    """Return the source with these nodes replaced by a number."""
    return code.apply(Edit(*code.span(node), str(number)) for node in nodes)
