"""The interface of a reduction pass: the reductions that it proposes, and the source with some of them applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from repros.engine.source import Edit
from repros.scripts.reduce.code import Code

R = TypeVar("R")
"""A single reduction, as its pass represents it."""


class ReductionPass(Protocol[R]):
    """A kind of change that makes a source smaller."""

    def reductions(self, code: Code) -> list[R]:
        """Return the changes that may be made to a source, in the order of the source."""

    def render(self, code: Code, chosen: Sequence[R]) -> str:
        """Return the source with the chosen changes; of two that exclude each other, only one is made."""


class Edits:
    """Passes whose reductions are single edits; of nested ones, only the outer is made."""

    def render(self, code: Code, chosen: Sequence[Edit]) -> str:
        """Return the source with the edits."""
        return code.apply(chosen)


class Replacements:
    """Passes whose reductions are the edits of a definition and all its uses."""

    def render(self, code: Code, chosen: Sequence[tuple[Edit, ...]]) -> str:
        """Return the source with the edits."""
        return code.apply(edit for reduction in chosen for edit in reduction)
