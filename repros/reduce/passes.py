"""The interface of a pass: units, each of which makes a source smaller, and the source with some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from repros.reduce.code import Code

Unit = TypeVar("Unit")


class Pass(Protocol[Unit]):
    """A way to make a source smaller."""

    def units(self, code: Code) -> list[Unit]:
        """Return what may be done to a source, in its order."""

    def render(self, code: Code, chosen: Sequence[Unit]) -> str:
        """Return the source with what was chosen done; of two that exclude each other, one."""
