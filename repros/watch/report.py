"""What a session has found so far: events become findings, and findings become lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from repros.match import Failure
from repros.model import Repro
from repros.watch.compare import Comparison
from repros.watch.crash import find_crashes
from repros.watch.events import Event
from repros.watch.finding import Finding, from_event
from repros.watch.identify import Identified, identify
from repros.watch.json_format import crash_ids, finding_to_json
from repros.watch.text import format_finding, format_summary

CRASH = "crash"
"""The check of an exception that ended the program."""


class Report:
    """Prints each finding once, as it comes, and keeps what was found for the summary."""

    def __init__(
        self, catalogue: Iterable[Repro], say: Callable[[str], None], width: int, json_file: Path | None = None
    ) -> None:
        """Report on the repros of a catalogue.

        Args:
            catalogue: the documented failures.
            say: prints lines.
            width: columns.
            json_file: a file to which each finding is written as a line of JSON.

        Raises:
            OSError: the file cannot be created.
        """
        self.found: list[tuple[Finding, tuple[Identified, ...]]] = []
        self._catalogue = tuple(catalogue)
        self._say = say
        self._width = width
        self._json: TextIO | None = json_file.open("w", encoding="utf-8") if json_file else None
        self._comparison = Comparison()
        self._raised: list[Event] = []
        self._processes: set[int] = set()
        self._said: set[tuple[str, str]] = set()

    def take(self, event: Event) -> None:
        """Take one event of the program."""
        self._processes.add(event["pid"])
        if event["event"] == "finding":
            self._add(from_event(event))
        elif event["event"] == "raised":
            self._raised.append(event)
        else:
            for finding in self._comparison.add(event):
                self._add(finding)

    def finish(self) -> None:
        """Compare what only the end decides, name the crash, and print the summary."""
        for finding in self._comparison.finish():
            self._add(finding)
        candidates, causes = find_crashes(self._raised, self._catalogue)
        if candidates:
            best = candidates[0].sightings[0]
            finding = _crash(best.failure, best.link.raised.name, best.link.raised.message, self._raised)
            self._add(finding, tuple(crash_ids(candidates)))
        checks = [finding.check for finding, _ in self.found]
        ids = [one.repro.id for _, ids in self.found for one in ids[:1]]
        self._say(format_summary(checks, ids, len(self._processes)))
        if causes and not candidates:
            raised = causes[0].links[0].raised
            self._say(f"repros: {raised.name} is no documented failure")
        if self._json is not None:
            self._json.close()

    def _add(self, finding: Finding, ids: tuple[Identified, ...] | None = None) -> None:
        if (finding.check, finding.text) in self._said:  # another rank has found it too
            return
        self._said.add((finding.check, finding.text))
        known = identify(finding, self._catalogue) if ids is None else ids
        self.found.append((finding, known))
        self._say(format_finding(finding, known, self._width))
        self._write(finding, known)

    def _write(self, finding: Finding, ids: tuple[Identified, ...]) -> None:
        if self._json is None:
            return
        try:
            self._json.write(json.dumps(finding_to_json(finding, ids)) + "\n")
            self._json.flush()
        except OSError as error:
            self._say(f"repros: {self._json.name} takes no more findings ({error.strerror})")
            self._json = None


def _crash(failure: Failure, name: str, message: str, events: Iterable[Event]) -> Finding:
    event = next(iter(events))
    frames = [frame for link in failure.links for frame in link.raised.frames]
    place = next((frame for frame in reversed(frames) if "site-packages" not in frame), None)
    return from_event({**event, "check": CRASH, "text": f"{name}: {' '.join(message.split())[:300]}"}, place=place)
