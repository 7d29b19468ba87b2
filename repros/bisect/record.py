"""A bisection as a JSON object, the form in which bisections are kept as evidence."""

from __future__ import annotations

from typing import Any

from repros.bisect.bisection import Bisection
from repros.bisect.question import MAX_RUNS, NEEDED_RUNS
from repros.bisect.search import Boundary

SCHEMA = 1
"""Raised when a field changes its name or its meaning."""


def bisection_record(bisection: Bisection, platform: str, date: str) -> dict[str, Any]:
    """Return the object: the question, every answer, both boundaries."""
    question, boundaries, answers = bisection.question, bisection.boundaries, bisection.answers
    spec = question.spec
    return {
        "schema": SCHEMA,
        "repro": spec.repro.id,
        "variant": spec.variant.name,
        "strategy": spec.strategy,
        "device": spec.device.value,
        "stack": question.stack.name,
        "package": question.package,
        "platform": platform,
        "date": date,
        "confirmed_by": [NEEDED_RUNS, MAX_RUNS],
        "start": str(question.start.version),
        "candidates": {str(release.version): str(release.date) for release in question.releases},
        "answers": {
            answer.version: {"answer": answer.answer.value, "why": answer.why, "versions": answer.versions}
            for _, answer in sorted(answers.items())
        },
        "begins": _boundary_record(bisection, boundaries.begins),
        "ends": _boundary_record(bisection, boundaries.ends),
    }


def _boundary_record(bisection: Bisection, boundary: Boundary | None) -> dict[str, Any] | None:
    if boundary is None:
        return None
    versions = [str(release.version) for release in bisection.question.releases]
    return {
        "affected": versions[boundary.affected],
        "free": None if boundary.free is None else versions[boundary.free],
        "unknown": [versions[number] for number in boundary.unknown],
    }
