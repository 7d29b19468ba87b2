"""What a matrix is going to run, and about how long that takes, as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from repros import environments
from repros.evidence.files import Evidence
from repros.matrix.worklist import WorkItem, Worklist, estimate
from repros.model import Stack
from repros.text.wording import count

_HEADS = ("stack", "cells", "known", "to run", "about", "environment")


def lines(worklist: Worklist, evidence: Evidence, *, everything: bool) -> list[str]:
    """Return the table, and a line that sums it up.

    Args:
        worklist: what there is to measure.
        evidence: what is known; the estimate is what it says the cells took.
        everything: whether what is known is run too.
    """
    rows = [_HEADS, *(_row(stack, worklist.of(stack), evidence, everything=everything) for stack in worklist.stacks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(_set(row, widths)).rstrip() for row in rows]
    return [*table, _sum(worklist, evidence, everything=everything)]


def _set(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Set words to the left, numbers to the right."""
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield f"{text:<{width}}" if number in {0, len(row) - 1} else f"{text:>{width}}"


def _row(stack: Stack, items: Sequence[WorkItem], evidence: Evidence, *, everything: bool) -> tuple[str, ...]:
    todo = [item for item in items if everything or not item.fresh]
    known = sum(len(item.specs) for item in items if item.fresh)
    return (
        stack.name,
        str(_cells(items)),
        str(known),
        str(_cells(todo)),
        format_seconds(estimate(todo, evidence)) if todo else "",
        _environment(stack) if todo else "",
    )


def _sum(worklist: Worklist, evidence: Evidence, *, everything: bool) -> str:
    todo = [item for item in worklist.items if everything or not item.fresh]
    about = f", about {format_seconds(estimate(todo, evidence))} one after another" if todo else ""
    impossible = f"; {count(worklist.impossible, 'cell')} cannot be run on these versions or this machine"
    return f"{count(_cells(todo), 'cell')} to run{about}{impossible if worklist.impossible else ''}"


def _environment(stack: Stack) -> str:
    if environments.ready(stack):
        return "ready"
    return (
        f"to be made: up to {stack.cuda.download / 1e9:.1f} GB to download, {stack.cuda.unpacked / 1e9:.1f} GB on disk"
    )


def _cells(items: Sequence[WorkItem]) -> int:
    return sum(len(item.specs) for item in items)


def format_seconds(seconds: float) -> str:
    """Return `40 s`, `12 min` or `1.5 h`."""
    if seconds < 100:  # noqa: PLR2004 - until then people count in seconds
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
