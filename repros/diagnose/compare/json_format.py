"""The value of `repros compare --json`, a public format."""

from __future__ import annotations

from typing import TypedDict

from repros.diagnose.compare.run import Result
from repros.diagnose.compare.text import headline

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class DifferenceJson(TypedDict):
    """The first difference."""

    step: int
    """Of what is no step, the step before; 0 for none."""
    kind: str
    """`step`, `evaluation`, `results` or `end`."""
    stage: str
    what: str
    first: str
    second: str
    relative: float | None
    rank: str | None


class CompareJson(TypedDict):
    """What a comparison gave."""

    schema: int
    equal: bool
    answer: str
    steps: int
    same_bits: int
    evaluations: int
    results: int
    offset: int
    exact: bool
    difference: DifferenceJson | None
    equal_in_step: list[str]
    largest: dict[str, object] | None
    tolerance: dict[str, object] | None
    notes: list[str]
    exits: list[int]


def result_to_json(result: Result, exits: tuple[int, int]) -> CompareJson:
    """Return a result as an object for JSON."""
    found, at, worst, tolerance = result.difference, result.at, result.worst, result.tolerance
    return {
        "schema": SCHEMA,
        "equal": found is None,
        "answer": headline(result),
        "steps": result.steps,
        "same_bits": result.same_bits,
        "evaluations": result.evaluations,
        "results": result.results,
        "offset": result.offset,
        "exact": result.exact,
        "difference": None
        if found is None or at is None
        else {
            "step": result.offset + at.number,
            "kind": at.kind,
            "stage": found.stage,
            "what": found.text,
            "first": found.values[0],
            "second": found.values[1],
            "relative": _finite(found.relative),
            "rank": found.rank,
        },
        "equal_in_step": list(result.equal),
        "largest": None
        if worst is None
        else {"relative": worst.relative, "allowed": worst.allowed, "where": worst.where, "step": worst.step},
        "tolerance": None
        if tolerance is None
        else {
            "relative": tolerance.relative,
            "dtype": tolerance.dtype,
            "modules": tolerance.modules,
            "terms": tolerance.terms,
            "step": tolerance.step,
        },
        "notes": list(result.notes),
        "exits": list(exits),
    }


def _finite(number: float | None) -> float | None:
    """Return a number unless it is infinite, which JSON cannot say."""
    return number if number is None or number < float("inf") else None
