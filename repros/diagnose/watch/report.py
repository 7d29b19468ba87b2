"""The findings of a session so far, each with the repros that it may be."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from repros import inside
from repros.diagnose.match import Candidate, ChainLink, LogFailure, SignatureIndex
from repros.diagnose.match.candidates import find_candidates
from repros.diagnose.match.user_frames import read_code
from repros.diagnose.messages import Explanation, explain
from repros.diagnose.watch import inside as observation
from repros.diagnose.watch.compare import Comparison
from repros.diagnose.watch.coverage import Coverage
from repros.diagnose.watch.events import Event
from repros.diagnose.watch.finding import Finding, from_event
from repros.diagnose.watch.identify import CRASH, Identified, identify
from repros.diagnose.watch.inside.check import is_chosen
from repros.diagnose.watch.names import FIRST_NAN
from repros.engine.causes import is_consequence
from repros.model import Raised, Repro
from repros.simulated_gpus import import_hooks

Found = tuple[Finding, tuple[Identified, ...]]
"""A finding, and the repros that it may be, the most certain first."""

_LONGEST_MESSAGE = 300
_OURS = (
    *(f"{Path(file).parent}{os.sep}" for file in (inside.__file__, observation.__file__)),
    import_hooks.__file__,
    "<",
)
"""Path prefixes of our own frames; the last is that of `watch/inside/observe/compiling.py`."""
_PACKAGES = "site-packages"
"""A part of the paths of libraries; the watch itself lies elsewhere, and is in the stack of a backward."""
_SIGNALLED = {"KeyboardInterrupt", "SignalException"}
"""Exceptions that a signal raises in the program and in torchrun's agent: no failures of their own."""


class Report:
    """Collects the findings of one program, each once, whichever rank comes first."""

    def __init__(
        self,
        catalogue: Iterable[Repro],
        show: Callable[[Finding, tuple[Identified, ...]], None],
        *,
        only: Collection[str] = (),
        skip: Collection[str] = (),
    ) -> None:
        """Report on the repros of a catalogue.

        Args:
            catalogue: the documented failures.
            show: called with each finding as it comes.
            only: names or first words of the checks that may report; empty for all.
            skip: names or first words of the checks that are disabled.
        """
        self.found: list[Found] = []
        self.processes: set[int] = set()
        """The watched processes of the program, by pid."""
        self.failures: list[Event] = []
        """Errors of the watch itself."""
        self.lost: set[int] = set()
        """The processes that could not write all of their events, by pid."""
        self.too_old: set[int] = set()
        """The processes of a Python that the watch does not support, by pid."""
        self.unknown: Raised | None = None
        """After `finish`: the exception that ended the program, unless it is a documented failure."""
        self.crash: Explanation | None = None
        """What the words of that exception say."""
        self.coverage = Coverage(only, skip)
        """What the checks were shown."""
        self._catalogue = tuple(catalogue)
        self._show = show
        self._compares_crashes = is_chosen(CRASH, frozenset(only), frozenset(skip))
        self._comparison = Comparison()
        self._raised: list[Event] = []
        self._echoes: list[Event] = []
        """Findings that another rank has caused, which may report the cause itself."""
        self._reported: set[tuple[str, str]] = set()

    @property
    def is_whole(self) -> bool:
        """Whether a process was watched in which torch was imported, and no event is missing."""
        return self.coverage.has_torch and not self.failures and not self.lost

    def take(self, event: Event) -> None:
        """Take one event of the program; an event that raises an error counts as an error of the watch."""
        try:
            self._take(event)
        except Exception as error:  # noqa: BLE001 - the program runs on, and somebody has to wait for its end
            self.failures.append({"where": "the comparison", "error": f"{type(error).__name__}: {error}"})

    def _take(self, event: Event) -> None:
        if event["event"] == "too_old":
            self.too_old.add(event["pid"])
            return
        self.processes.add(event["pid"])
        match event["event"]:
            case "finding":
                if not self._has_first(event["check"]):
                    self._add(from_event(event))
            case "raised":
                self._raised.append(event)
            case "echo":
                self._echoes.append(event)
            case "lost":
                self.lost.add(event["pid"])
            case "failed":
                self.failures.append(event)
            case "seen":
                self.coverage.add(event)
            case _:
                for finding in self._comparison.add(event):
                    self._add(finding)

    def finish(self) -> None:
        """Compare what only the program's end decides, and name the crash."""
        for finding in self._comparison.finish():
            self._add(finding)
        self._add_echo()
        if self._compares_crashes:
            self._name_crash()

    def _add_echo(self) -> None:
        """Report the first echo if no rank has reported its cause."""
        for event in sorted(self._echoes, key=lambda event: (event["step"], event["rank"] or 0))[:1]:
            if not self._has_first(event["check"]):
                self._add(from_event(event))

    def _has_first(self, check: str) -> bool:
        """Return whether a check is one of the first NaN, and one of these has reported already."""
        first, *_ = check.split("_")
        return first in FIRST_NAN and any(finding.check.startswith(f"{first}_") for finding, _ in self.found)

    def _name_crash(self) -> None:
        raised = sorted(self._raised, key=lambda event: (event["rank"] is None, event["rank"] or 0, event["pid"]))
        candidates, causes = find_crashes(raised, self._catalogue)
        if candidates:
            best = candidates[0].occurrences[0]
            ids = [
                Identified(candidate.repro, candidate.confidence, "its exception agrees") for candidate in candidates
            ]
            event = next(event for event in raised if _has_raised(event, best.link.raised))
            self._add(_crash(best.failure, best.link.raised, event), tuple(ids))
        elif causes:
            self.unknown = causes[0].links[0].raised
            self.crash = explain(causes)[0]

    def _add(self, finding: Finding, ids: tuple[Identified, ...] | None = None) -> None:
        if (finding.check, finding.text) in self._reported:  # another rank has reported it, too
            return
        self._reported.add((finding.check, finding.text))
        known = identify(finding, self._catalogue) if ids is None else ids
        self.found.append((finding, known))
        self._show(finding, known)


def _has_raised(event: Event, raised: Raised) -> bool:
    return any((link["type"], link["message"]) == (raised.type, raised.message) for link in event["chain"])


def _crash(failure: LogFailure, raised: Raised, event: Event) -> Finding:
    frames = [frame for link in failure.links for frame in link.raised.frames]
    place = next((frame for frame in reversed(frames) if not frame.startswith(_OURS) and _PACKAGES not in frame), None)
    message = textwrap.shorten(raised.message, _LONGEST_MESSAGE)
    return from_event({**event, "check": CRASH, "text": f"{raised.name}: {message}"}, place=place)


def failures_of(events: Iterable[Event]) -> tuple[LogFailure, ...]:
    """Return the exception chains of the processes that raised, each chain once with all ranks that raised it."""
    by_chain: dict[tuple[tuple[str, str], ...], tuple[list[ChainLink], list[str]]] = {}
    for event in events:
        links = [
            ChainLink(_raised(link), 0, has_traceback=True, code=read_code(link["frames"])) for link in event["chain"]
        ]
        if not links:
            continue
        key = tuple((link.raised.type, link.raised.message) for link in links)
        _, labels = by_chain.setdefault(key, (links, []))
        if event.get("rank") is not None:
            labels.append(f"rank {event['rank']}")
    return tuple(LogFailure(tuple(links), tuple(dict.fromkeys(labels))) for links, labels in by_chain.values())


def find_crashes(
    events: Sequence[Event], catalogue: Iterable[Repro]
) -> tuple[tuple[Candidate, ...], tuple[LogFailure, ...]]:
    """Return the repros that the exceptions may be, and the failures that are not another process's consequence."""
    failures = failures_of(events)
    versions = {name: (version,) for event in events for name, version in event.get("versions", {}).items()}
    candidates, _ = find_candidates(failures, SignatureIndex(catalogue), versions)
    causes = [failure for failure in failures if not all(_is_consequence(link.raised) for link in failure.links)]
    return candidates, tuple(causes)


def _is_consequence(raised: Raised) -> bool:
    return is_consequence(raised) or raised.name.rpartition(".")[2] in _SIGNALLED


def _raised(link: Event) -> Raised:
    return Raised(link["type"], tuple(link["bases"]), link["message"], tuple(link["frames"]), link["via"])
