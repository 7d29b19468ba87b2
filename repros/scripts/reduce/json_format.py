"""The report of `repros reduce --json`, a public format."""

from __future__ import annotations

from typing import TypedDict

from repros.scripts.reduce.reduction import Reduction

SCHEMA = 2
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class ReductionJson(TypedDict):
    """What became of a script."""

    schema: int
    script: str
    output: str
    stack: str
    signature: str
    """What both scripts show; empty if a text in the output is the failure."""
    places: list[str]
    """Where: the innermost function, or what each rank waits for."""
    texts: list[str]
    clean_on: str | None
    """The stack on which both end clean, if one was asked for."""
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


def reduction_to_json(found: Reduction, script: str, output: str) -> ReductionJson:
    """Return what was found as an object for JSON."""
    return {
        "schema": SCHEMA,
        "script": script,
        "output": output,
        "stack": found.stack,
        "signature": found.failure.signature,
        "places": list(found.failure.places),
        "texts": list(found.failure.texts),
        "clean_on": found.clean_on,
        "ranks": found.ranks,
        "lines_before": found.before[0],
        "lines_after": found.after[0],
        "tokens_before": found.before[1],
        "tokens_after": found.after[1],
        "candidates": found.tried,
        "refused": found.refused,
        "seconds": round(found.seconds, 1),
        "warm": found.is_warm,
        "complete": found.is_complete,
    }
