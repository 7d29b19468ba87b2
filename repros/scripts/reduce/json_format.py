"""The report of `repros reduce --json`, a public format."""

from __future__ import annotations

from typing import Any

from repros.scripts.reduce.reduction import Reduction

SCHEMA = 2
"""Raised whenever a key is renamed or removed, or its meaning changes."""


def reduction_to_json(reduction: Reduction, script: str, output: str) -> dict[str, Any]:
    """Return a reduction as an object for JSON."""
    return {
        "schema": SCHEMA,
        "script": script,
        "output": output,
        "stack": reduction.stack,
        "signature": reduction.failure.signature,  # empty if a text in the output is the failure
        "places": list(reduction.failure.locations),  # the innermost function, or the call of each waiting rank
        "texts": list(reduction.failure.texts),
        "clean_on": reduction.clean_on,
        "ranks": reduction.ranks,
        # Lines with code, without comments and blank ones; tokens are names, numbers, texts and operators.
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
