"""The two files, as values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def read_operators() -> dict[str, Any]:
    """Return the operators.

    Returns:
        `cuda`: rows with the `operators` of ATen that draw CUDA's numbers, and what draws `and_so`, in Markdown;
        `host`: other operators that draw, by name.
    """
    operators: dict[str, Any] = json.loads((FOLDER / "operators.json").read_text("utf-8"))
    return operators


def read_published() -> list[dict[str, Any]]:
    """Return the published numbers.

    Returns:
        Rows with a `source` and its `address`, the `seed`, what was `drawn` (an expression), and the `numbers` that are
        printed there: the first ones, or those `at` places of what was drawn. A row that depends on the GPU has its
        name (`gpu`), and a profile with as many threads (`like`).
    """
    published: list[dict[str, Any]] = json.loads((FOLDER / "published.json").read_text("utf-8"))
    return published
