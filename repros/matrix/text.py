"""The matrix as text: the worklist as a table, and one failure over the stacks as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from repros import environments
from repros.evidence import Evidence, StackStatus, stack_status
from repros.matrix.worklist import Worklist, WorklistEntry, estimate_seconds, pending
from repros.model import Repro, Stack
from repros.text.wording import count

_HEADINGS = ("stack", "cells", "known", "to run", "about", "environment")


def worklist_lines(worklist: Worklist, evidence: Evidence, *, include_fresh: bool) -> list[str]:
    """Return a table with a row for each stack, and a line with the totals.

    Args:
        worklist: The units that can be measured.
        evidence: Earlier measurements, from which the seconds are estimated.
        include_fresh: Whether units with fresh evidence run, too.
    """
    body = [_row(stack, worklist.on_stack(stack), evidence, include_fresh=include_fresh) for stack in worklist.stacks]
    rows = [_HEADINGS, *body]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(_align(row, widths)).rstrip() for row in rows]
    return [*table, _totals(worklist, evidence, include_fresh=include_fresh)]


def describe_stacks(repro: Repro, stacks: Sequence[Stack], evidence: Evidence) -> str:
    """Return on which stacks a failure occurs: `fails on 2023-12 to 2024-06; clean on 2023-05, 2024-09 to current`."""
    by_stack = {stack.name: stack_status(repro, stack, evidence) for stack in stacks}
    parts = [
        f"{status} on {', '.join(_stack_spans(by_stack, status))}"
        for status in StackStatus
        if status in by_stack.values()
    ]
    return "; ".join(parts) or "not measured yet"


def format_seconds(seconds: float) -> str:
    """Return `40 s`, `12 min` or `1.5 h`."""
    if seconds < 100:  # noqa: PLR2004 - below that, people count in seconds
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _align(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Pad the cells of a row: words to the left, numbers to the right."""
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield f"{text:<{width}}" if number in {0, len(row) - 1} else f"{text:>{width}}"


def _row(stack: Stack, entries: Sequence[WorklistEntry], evidence: Evidence, *, include_fresh: bool) -> tuple[str, ...]:
    to_run = pending(entries, include_fresh=include_fresh)
    return (
        stack.name,
        str(_count_cells(entries)),
        str(_count_cells([entry for entry in entries if entry.fresh])),
        str(_count_cells(to_run)),
        format_seconds(estimate_seconds(to_run, evidence)) if to_run else "",
        _environment_cost(stack) if to_run else "",
    )


def _totals(worklist: Worklist, evidence: Evidence, *, include_fresh: bool) -> str:
    to_run = pending(worklist.entries, include_fresh=include_fresh)
    time = f", about {format_seconds(estimate_seconds(to_run, evidence))} one after another" if to_run else ""
    unavailable = f"; {count(worklist.unavailable, 'cell')} cannot run on these versions or this machine"
    return f"{count(_count_cells(to_run), 'cell')} to run{time}{unavailable if worklist.unavailable else ''}"


def _environment_cost(stack: Stack) -> str:
    if environments.ready(stack):
        return "ready"
    if stack.cuda is None:
        return "to be made"
    download, unpacked = stack.cuda.download / 1e9, stack.cuda.unpacked / 1e9
    return f"to be made: up to {download:.1f} GB to download, {unpacked:.1f} GB on disk"


def _count_cells(entries: Sequence[WorklistEntry]) -> int:
    return sum(len(entry.specs) for entry in entries)


def _stack_spans(by_stack: dict[str, StackStatus | None], status: StackStatus) -> Iterator[str]:
    """Yield the stacks with one status, neighbours together: `2023-12 to 2024-06`."""
    for found, group in groupby(by_stack, key=by_stack.__getitem__):
        names = list(group)
        if found is status:
            yield names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
