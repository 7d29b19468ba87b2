"""A difference between two runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """The first difference between two runs."""

    stage: str
    """The kind of value that differs, such as `gradient`."""
    text: str
    """A clause about the difference, without the values."""
    values: tuple[str, str]
    """The values of the first and of the second run."""
    relative: float | None = None
    """The relative difference of numbers; None for other values."""
    rank: str | None = None
    """The compared rank, if there are several."""
    rows: tuple[int, int] | None = None
    """The sizes of two batches, if these are what differs."""
