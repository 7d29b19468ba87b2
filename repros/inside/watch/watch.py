"""The watch of one process: who listens to which observation, and which steps are looked at closely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .events import MOST_FAILURES, Events

Listener = Callable[..., None]


class Watch:
    """The listeners of this process, and what all checks share."""

    def __init__(self, events: Events, every: int, only: frozenset[str], skip: frozenset[str]) -> None:
        """Begin without listeners.

        Args:
            events: where findings go.
            every: steps between two close looks, once the doubling ones lie further apart; 0 for doubling alone.
            only: families or checks that may speak; empty for all.
            skip: families or checks that may not.
        """
        self.events = events
        self.every = every
        self.only = only
        self.skip = skip
        self.compiles = False
        """Whether the program compiles modules: hooks on modules would be compiled with them, so they are off."""
        self._listeners: dict[str, list[Listener]] = {}
        self._said: set[tuple[Any, ...]] = set()

    def listen(self, observation: str, listener: Listener) -> None:
        """Call `listener` with each observation of that name."""
        self._listeners.setdefault(observation, []).append(listener)

    def tell(self, observation: str, *facts: Any) -> None:
        """Offer an observation to all checks; a check that fails is silent, and the program goes on."""
        if self.events.failures > MOST_FAILURES:
            return
        for listener in self._listeners.get(observation, ()):
            try:
                listener(*facts)
            except Exception as error:
                self.events.failed(error, observation)

    def is_due(self, number: int) -> bool:
        """Return whether step `number`, from 1, is looked at closely: 1, 2, 4, 8 ... and every N."""
        return number & (number - 1) == 0 or (self.every > 0 and number % self.every == 0)

    def wants(self, check: str) -> bool:
        """Return whether a check may speak, by `--only` and `--skip`."""
        words = check.split("_")
        names = {"_".join(words[:end]) for end in range(1, len(words) + 1)}
        return not (self.skip & names) and (not self.only or bool(self.only & names))

    def find(self, check: str, text: str, *, once: tuple[Any, ...] = (), **details: Any) -> None:
        """Write a finding, once for each value of `once`."""
        if self.wants(check) and (check, *once) not in self._said:
            self._said.add((check, *once))
            self.events.finding(check, text, **details)
