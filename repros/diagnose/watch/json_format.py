"""The lines of `repros watch --json`, a public format: `finding.schema.json`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified

SCHEMA = 1
"""Incremented when a key is renamed or removed, or its meaning changes."""


class IdJson(TypedDict):
    """A repro that a finding may be."""

    id: str
    title: str
    confidence: str
    why: str


class FindingJson(TypedDict):
    """One line: a finding, or the exception that ended the program (check `crash`)."""

    schema: int
    check: str
    text: str
    ids: list[IdJson]
    rank: int | None
    step: int | None
    names: list[str]
    place: str | None
    numbers: dict[str, object]
    versions: dict[str, str]
    wrappers: list[str]


def finding_to_json(finding: Finding, ids: Sequence[Identified]) -> FindingJson:
    """Return a finding as one line's object."""
    return {
        "schema": SCHEMA,
        "check": finding.check,
        "text": finding.text,
        "ids": [
            {
                "id": identified.repro.id,
                "title": identified.repro.title,
                "confidence": identified.confidence.value,
                "why": identified.why,
            }
            for identified in ids
        ],
        "rank": finding.rank,
        "step": finding.step,
        "names": list(finding.names),
        "place": finding.place,
        "numbers": dict(finding.numbers),
        "versions": {name: versions[0] for name, versions in finding.versions.items()},
        "wrappers": sorted(finding.wrappers),
    }


class JsonLines:
    """A file with a line for each finding; a full disk loses lines and does not end the program."""

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            OSError: it cannot be created.
        """
        self.problem: str | None = None
        """Why the file takes no more lines."""
        self._file = path.open("w", encoding="utf-8")

    def write(self, finding: Finding, ids: Sequence[Identified]) -> None:
        """Append a finding, unless an earlier one could not be written."""
        if self.problem is None:
            try:
                self._file.write(json.dumps(finding_to_json(finding, ids)) + "\n")
                self._file.flush()
            except OSError as error:
                self.problem = f"{self._file.name} takes no more findings ({error.strerror})"

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()
