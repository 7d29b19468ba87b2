"""Askers that answer from a function: one release at a time, or several in any order."""

from __future__ import annotations

from collections.abc import Callable

from repros.scripts.bisect.search import Answer


class Wide:
    """Asker of several releases at once."""

    def __init__(
        self, answer: Callable[[int], Answer], width: int = 1, pick: Callable[[int], int] = lambda _: 0
    ) -> None:
        """Answer from a function.

        Args:
            answer: returns the answer of a release.
            width: how many releases are asked at once.
            pick: returns which of the begun probes is answered next; the first by default.
        """
        self.width = width
        self.begun: list[int] = []
        """Every question, in their order."""
        self.most = 0
        """The most questions that waited at the same time."""
        self._answer, self._pick = answer, pick
        self._waiting: list[int] = []

    def begin(self, number: int) -> None:
        self.begun.append(number)
        self._waiting.append(number)
        self.most = max(self.most, len(self._waiting))

    def next_answer(self) -> tuple[int, Answer]:
        number = self._waiting.pop(self._pick(len(self._waiting)))
        return number, self._answer(number)
