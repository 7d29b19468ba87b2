"""The lines of the placement table, in their order."""

from __future__ import annotations

from . import elementwise, generators, indexing, layers, lists, losses, optimizers, products, reductions
from .line import Line

LINES: list[Line] = [
    line
    for group in (elementwise, reductions, losses, products, layers, indexing, lists, generators, optimizers)
    for line in group.LINES
]
