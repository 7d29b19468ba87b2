"""Smaller numbers: steps, layers, sizes and ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from repros.scripts.reduce.code import Code, Edit, in_text

_LARGEST = 10**12


def groups(code: Code) -> Iterator[tuple[int, list[ast.Constant]]]:
    """Yield each number above 1 with all its places, then, if there are several, with each alone; large ones first.

    A size stands in several places, which must agree.
    """
    texts = in_text(code.tree)
    found: dict[int, list[ast.Constant]] = defaultdict(list)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node not in texts:
            found[node.value].append(node)
    large = sorted((number for number in found if 1 < number < _LARGEST), reverse=True)
    yield from ((number, found[number]) for number in large)
    for number in large:
        if len(found[number]) > 1:
            yield from ((number, [node]) for node in found[number])


def smaller(number: int) -> list[int]:
    """Return the numbers to try in place of a number, the smallest first: 1, 2 and its half."""
    return [each for each in dict.fromkeys((1, 2, number // 2)) if each < number]


def render(code: Code, places: list[ast.Constant], number: int) -> str:
    """Return the source with a number in these places."""
    return code.apply(Edit(*code.span(node), str(number)) for node in places)
