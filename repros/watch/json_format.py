"""The lines of `repros watch --json`, a public format: `finding.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from repros.match import Candidate
from repros.watch.finding import Finding
from repros.watch.identify import Identified

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


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
            {"id": one.repro.id, "title": one.repro.title, "confidence": one.confidence.value, "why": one.why}
            for one in ids
        ],
        "rank": finding.rank,
        "step": finding.step,
        "names": list(finding.names),
        "place": finding.place,
        "numbers": dict(finding.numbers),
        "versions": {name: versions[0] for name, versions in finding.versions.items()},
        "wrappers": sorted(finding.wrappers),
    }


def crash_ids(candidates: Sequence[Candidate]) -> list[Identified]:
    """Return the repros that a crash may be, as those of a finding."""
    return [Identified(one.repro, one.confidence, "the exception chain matches") for one in candidates]
