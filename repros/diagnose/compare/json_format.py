"""The result of `repros compare` as JSON, a public format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from repros.diagnose.compare.run import CompareResult
from repros.diagnose.compare.text import headline

SCHEMA = 1
"""Incremented when a key is renamed or removed, or its meaning changes."""


def result_to_json(result: CompareResult, exits: tuple[int, int]) -> dict[str, Any]:
    """Return a result as an object for JSON."""
    difference, at, largest, tolerance = result.difference, result.at, result.largest, result.tolerance
    return {
        "schema": SCHEMA,
        "equal": difference is None,
        "answer": headline(result),
        "steps": result.steps,
        "same_bits": result.same_bits,
        "evaluations": result.evaluations,
        "results": result.results,
        "offset": result.offset,
        "exact": result.exact,
        "difference": None
        if difference is None or at is None
        else {
            # Of an evaluation or of results, the number of the step before; 0 before step 1.
            "step": result.offset + at.number,
            "kind": at.kind,  # `step`, `evaluation`, `results` or `end`
            "stage": difference.stage,
            "what": difference.text,
            "first": difference.values[0],
            "second": difference.values[1],
            "relative": _finite(difference.relative),
            "rank": difference.rank,
        },
        "equal_in_step": list(result.equal),
        "largest": asdict(largest) if largest else None,
        "tolerance": {"relative": tolerance.relative, **asdict(tolerance)} if tolerance else None,
        "notes": list(result.notes),
        "exits": list(exits),
    }


def _finite(number: float | None) -> float | None:
    """Return a number, or None if it is infinite, which JSON cannot express."""
    return number if number is None or number < float("inf") else None
