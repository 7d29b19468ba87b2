"""The interface of a pass: units, each of which makes a source smaller, and the source with some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from repros.scripts.reduce.code import Code, Edit

Unit = TypeVar("Unit")


class Pass(Protocol[Unit]):
    """A way to make a source smaller."""

    def units(self, code: Code) -> list[Unit]:
        """Return what may be done to a source, in its order."""

    def render(self, code: Code, chosen: Sequence[Unit]) -> str:
        """Return the source with what was chosen done; of two that exclude each other, one."""


class Edits:
    """Passes each of whose units is one edit; of nested ones, the outer is done."""

    def render(self, code: Code, chosen: Sequence[Edit]) -> str:
        """Return the source with the edits."""
        return code.apply(chosen)


class Replacements:
    """Passes each of whose units is the edits of the uses of something, and that of its definition."""

    def render(self, code: Code, chosen: Sequence[tuple[Edit, ...]]) -> str:
        """Return the source with the edits."""
        return code.apply(edit for unit in chosen for edit in unit)
