"""Recorded figures, the source of tables and plots on the pages."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("kept.json")


def read_kept(file: Path = KEPT) -> dict[str, Any]:
    """Return the figures by part of the benchmark; empty without a file."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def spread(numbers: Sequence[float], digits: int) -> dict[str, float]:
    """Return the median, the smallest and the largest of numbers, rounded."""
    found = {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers)}
    return {which: round(number, digits) for which, number in found.items()}


def keep(measured: Mapping[str, Any], file: Path = KEPT) -> None:
    """Replace the figures of the measured parts, and keep those of other parts."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(read_kept(file) | dict(measured), indent=2) + "\n", "utf-8")
