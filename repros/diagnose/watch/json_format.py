"""The lines of `repros watch --json`, a public format: `finding.schema.json`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified

SCHEMA = 1
"""Incremented when a key is renamed or removed, or its meaning changes."""


def finding_to_json(finding: Finding, ids: Sequence[Identified]) -> dict[str, Any]:
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
