"""The matrix as text: the worklist as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from repros.engine.environments import ready
from repros.engine.matrix.worklist import Worklist, WorklistEntry, pending
from repros.model import Stack
from repros.text.wording import count

Forecast = Callable[[Sequence[WorklistEntry]], float]
"""Returns the expected duration of entries, in seconds."""

_HEADINGS = ("stack", "cells", "known", "to run", "about", "environment")


def worklist_lines(worklist: Worklist, forecast: Forecast, *, include_fresh: bool) -> list[str]:
    """Return a table with a row for each stack, and a line with the totals.

    Args:
        worklist: the units that can be measured.
        forecast: returns the expected duration of entries, in seconds.
        include_fresh: whether units with fresh evidence also run.
    """
    body = [_row(stack, worklist.on_stack(stack), forecast, include_fresh=include_fresh) for stack in worklist.stacks]
    rows = [_HEADINGS, *body]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(_align(row, widths)).rstrip() for row in rows]
    return [*table, _totals(worklist, forecast, include_fresh=include_fresh)]


def format_seconds(seconds: float) -> str:
    """Return `40 s`, `12 min` or `1.5 h`."""
    if seconds < 100:  # noqa: PLR2004 - shorter times are given in seconds
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _align(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Pad the cells of a row: words to the left, numbers to the right."""
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield f"{text:<{width}}" if number in {0, len(row) - 1} else f"{text:>{width}}"


def _row(stack: Stack, entries: Sequence[WorklistEntry], forecast: Forecast, *, include_fresh: bool) -> tuple[str, ...]:
    to_run = pending(entries, include_fresh=include_fresh)
    return (
        stack.name,
        str(_count_cells(entries)),
        str(_count_cells([entry for entry in entries if entry.fresh])),
        str(_count_cells(to_run)),
        format_seconds(forecast(to_run)) if to_run else "",
        _environment_cost(stack) if to_run else "",
    )


def _totals(worklist: Worklist, forecast: Forecast, *, include_fresh: bool) -> str:
    to_run = pending(worklist.entries, include_fresh=include_fresh)
    missing = {entry.unit.stack for entry in to_run} - {stack.name for stack in worklist.stacks if ready(stack)}
    time = f", about {format_seconds(forecast(to_run))} on this machine" if to_run else ""
    making = f" plus the creation of {count(len(missing), 'environment')}" if missing else ""
    unavailable = f"; {count(worklist.unavailable, 'cell')} cannot run on these versions or this machine"
    cells = count(_count_cells(to_run), "cell")
    return f"{cells} to run{time}{making}{unavailable if worklist.unavailable else ''}"


def _environment_cost(stack: Stack) -> str:
    if ready(stack):
        return "ready"
    if stack.cuda is None:
        return "to be made"
    download, unpacked = stack.cuda.download / 1e9, stack.cuda.unpacked / 1e9
    return f"to be made: up to {download:.1f} GB to download, {unpacked:.1f} GB on disk"


def _count_cells(entries: Sequence[WorklistEntry]) -> int:
    return sum(len(entry.cells) for entry in entries)
