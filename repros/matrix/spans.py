"""On which stacks a failure occurs, in words; apart from what measures, since `repros list` needs only this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from repros.evidence import Evidence, StackStatus, stack_status
from repros.model import Repro, Stack


def describe_stacks(repro: Repro, stacks: Sequence[Stack], evidence: Evidence) -> str:
    """Return on which stacks a failure occurs: `fails on 2023-12 to 2024-06; clean on 2023-05, 2024-09 to current`."""
    by_stack = {stack.name: stack_status(repro, stack, evidence) for stack in stacks}
    parts = [
        f"{status} on {', '.join(_stack_spans(by_stack, status))}"
        for status in StackStatus
        if status in by_stack.values()
    ]
    return "; ".join(parts) or "not measured yet"


def _stack_spans(by_stack: dict[str, StackStatus | None], status: StackStatus) -> Iterator[str]:
    """Yield the stacks with one status, neighbours together: `2023-12 to 2024-06`."""
    for found, group in groupby(by_stack, key=by_stack.__getitem__):
        names = list(group)
        if found is status:
            yield names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
