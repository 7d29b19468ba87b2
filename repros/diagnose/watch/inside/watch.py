"""The watch of one process: the listeners of each observation, and the steps that are inspected in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from repros.diagnose.watch.inside.check import is_chosen
from repros.diagnose.watch.inside.events import MOST_FAILURES, Events
from repros.diagnose.watch.inside.values import Known
from repros.inside import contract

Listener = Callable[..., None]


_MODULE = f"{__package__}.install"


class WatchOptions(NamedTuple):
    """The options of `repros watch` that the processes of the program need."""

    folder: str
    """Where the processes of the program write their events."""
    every: int = 0
    """Also inspect every N-th step; 0 for steps 1, 2, 4, 8, ... alone."""
    only: frozenset[str] = frozenset()
    """The names or first words of the checks that may report; empty for all."""
    skip: frozenset[str] = frozenset()
    """The names or first words of the checks that are disabled."""
    also: frozenset[str] = frozenset()
    """The first words of the checks that report only on request, as `nan` by `--first-nan`."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> WatchOptions:
        """Read the environment variables of `to_environ`."""
        named, skip = (
            frozenset(filter(None, environ.get(name, "").split(",")))
            for name in (contract.WATCH_ONLY, contract.WATCH_SKIP)
        )
        only = frozenset(name for name in named if not name.startswith("+"))
        also = frozenset(name[1:] for name in named - only)
        every = environ.get(contract.WATCH_EVERY, "")
        return cls(environ[contract.WATCH], int(every) if every.isdigit() else 0, only, skip, also)

    def to_environ(self) -> dict[str, str]:
        """Return the environment variables by which a process watches itself."""
        return {
            contract.WATCH: self.folder,
            contract.WATCH_MODULE: _MODULE,
            contract.WATCH_EVERY: str(self.every),
            contract.WATCH_ONLY: ",".join([*sorted(self.only), *(f"+{name}" for name in sorted(self.also))]),
            contract.WATCH_SKIP: ",".join(sorted(self.skip)),
        }


class _Channel:
    """One kind of observation."""

    __slots__ = ("count", "moment", "receivers")

    def __init__(self, receivers: tuple[Listener, ...] = ()) -> None:
        self.receivers = receivers
        """The listeners and observers, in one tuple: some observations are made many times in a step."""
        self.count = 0
        self.moment = 0
        """The number of the last observation of this kind among all observations."""


_NEVER = _Channel()


class Watch:
    """The listeners of this process, and what all checks share."""

    def __init__(self, events: Events) -> None:
        """Create a disabled watch without listeners.

        Args:
            events: receives findings and failures.
        """
        self.events = events
        self.options: WatchOptions | None = None
        """None while the watch is disabled."""
        self.compiles = False
        """Whether the program compiles modules. Hooks on modules are off then: they would be compiled with them."""
        self._listeners: dict[str, list[Listener]] = {}
        self._observers: dict[str, list[Listener]] = {}
        self._channels: dict[str, _Channel] = {}
        self._moment = 0
        self._reported: set[tuple[object, ...]] = set()
        self._known: tuple[int, Known] = (0, {})

    def begin(self, options: WatchOptions) -> None:
        """Forget all checks and what they know, and write to the options' folder; observers stay."""
        self.events.redirect(options.folder)
        self.options = options
        self.events.wrappers.clear()
        self._listeners.clear()
        self._channels.clear()
        self._reported.clear()
        self.notify("begins")

    def end(self) -> None:
        """Disable the watch: nothing is observed and nothing is written."""
        self.options = None
        self.events.redirect(None)

    def listen(self, observation: str, listener: Listener) -> None:
        """Call `listener`, which belongs to a check, once with each further observation of that name."""
        listeners = self._listeners.setdefault(observation, [])
        if listener not in listeners:
            listeners.append(listener)
            self._connect(observation)

    def listen_to(self, check: object, *observations: str) -> None:
        """Call the methods of a check, once with each further observation of the same name."""
        for observation in observations:
            self.listen(observation, getattr(check, observation))

    def ignore(self, observation: str, listener: Listener) -> None:
        """Remove `listener` until it listens again: a check that waits for nothing costs nothing."""
        listeners = self._listeners.get(observation, [])
        if listener in listeners:
            listeners.remove(listener)
            self._connect(observation)

    def ignore_from(self, check: object, *observations: str) -> None:
        """Remove the methods of a check that :meth:`listen_to` has added."""
        for observation in observations:
            self.ignore(observation, getattr(check, observation))

    def observe(self, observation: str, observer: Listener) -> None:
        """Call `observer`, which makes observations itself, with each observation of that name, for good."""
        self._observers.setdefault(observation, []).append(observer)
        self._connect(observation)

    def _connect(self, observation: str) -> _Channel:
        channel = self._channels.setdefault(observation, _Channel())
        channel.receivers = (*self._listeners.get(observation, ()), *self._observers.get(observation, ()))
        return channel

    def count(self, observation: str) -> int:
        """Return how often an observation was made since the watch began, this time included."""
        return self._channels.get(observation, _NEVER).count

    def is_later(self, observation: str, other: str) -> bool:
        """Return whether an observation was made, and the other one not since then."""
        return self._channels.get(observation, _NEVER).moment > self._channels.get(other, _NEVER).moment

    def notify(self, observation: str, *facts: object) -> None:
        """Pass an observation to all listeners; the error of a listener is recorded, and the program goes on."""
        if self.options is None or self.events.failures > MOST_FAILURES:
            return
        channel = self._channels.get(observation)
        if channel is None:
            channel = self._connect(observation)
        channel.count += 1
        self._moment = channel.moment = self._moment + 1
        for listener in channel.receivers:
            try:
                listener(*facts)
            except Exception as error:
                self.events.failed(error, observation)

    def known(self) -> Known:
        """Return the cache of norms and sums that the receivers of this observation share.

        The program does nothing between two receivers, so no tensor changes until the next observation, which gets an
        empty cache.
        """
        if self._known[0] != self._moment:
            self._known = (self._moment, {})
        return self._known[1]

    def is_due(self, number: int) -> bool:
        """Return whether step `number`, from 1, is inspected in full: steps 1, 2, 4, 8, ... and every N-th one."""
        every = self.options.every if self.options is not None else 0
        return number & (number - 1) == 0 or (every > 0 and number % every == 0)

    def is_enabled(self, check: str) -> bool:
        """Return whether a check may report, by `--only` and `--skip`."""
        if self.options is None:
            return False
        only = self.options.only | self.options.also if self.options.only else self.options.only
        return is_chosen(check, only, self.options.skip)

    def is_requested(self, word: str) -> bool:
        """Return whether the checks whose names begin with a word were requested, which else do not listen at all."""
        options = self.options
        return options is not None and any(name.split("_")[0] == word for name in options.also | options.only)

    def report(self, check: str, text: str, *, once: tuple[object, ...] = (), **details: object) -> None:
        """Write a finding, once for each value of `once`."""
        if self.is_enabled(check) and (check, *once) not in self._reported:
            self._reported.add((check, *once))
            self.events.finding(check, text, **details)
