"""The report of `repros reduce --json`, a public format."""

from __future__ import annotations

from typing import TypedDict

from repros.scripts.reduce.reduction import Reduction

SCHEMA = 2
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class ReductionJson(TypedDict):
    """The reduction of a script."""

    schema: int
    script: str
    output: str
    stack: str
    signature: str
    """Signature of both scripts; empty if a text in the output is the failure."""
    places: list[str]
    """The innermost function, or the call in which each rank waits."""
    texts: list[str]
    clean_on: str | None
    """The stack on which both have a clean exit, if one was named."""
    ranks: int
    lines_before: int
    """Lines with code, without comments and blank ones."""
    lines_after: int
    tokens_before: int
    """Names, numbers, texts and operators."""
    tokens_after: int
    candidates: int
    refused: int
    seconds: float
    warm: bool
    complete: bool


def reduction_to_json(reduction: Reduction, script: str, output: str) -> ReductionJson:
    """Return a reduction as an object for JSON."""
    return {
        "schema": SCHEMA,
        "script": script,
        "output": output,
        "stack": reduction.stack,
        "signature": reduction.failure.signature,
        "places": list(reduction.failure.locations),
        "texts": list(reduction.failure.texts),
        "clean_on": reduction.clean_on,
        "ranks": reduction.ranks,
        "lines_before": reduction.before[0],
        "lines_after": reduction.after[0],
        "tokens_before": reduction.before[1],
        "tokens_after": reduction.after[1],
        "candidates": reduction.tried,
        "refused": reduction.refused,
        "seconds": round(reduction.seconds, 1),
        "warm": reduction.is_warm,
        "complete": reduction.is_complete,
    }
