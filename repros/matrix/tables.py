"""What the evidence says of each failure over the stacks: where it is there, where it is not, where nobody looked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from repros.evidence.files import Evidence
from repros.matrix.ranges import ABSENT, SHOWN
from repros.model import Repro, Stack

FAILS, CLEAN, OTHERWISE, NOTHING = "fails", "clean", "differs", ""
"""What is said of one failure on one stack; `differs`: seen, and neither as documented nor free of it everywhere."""


def table(repros: Iterable[Repro], stacks: Sequence[Stack], evidence: Evidence) -> str:
    """Return a table in Markdown: a row for each failure, a column for each stack."""
    heads = ("Id", "Seen on", *(stack.name for stack in stacks))
    rows = [heads, ("---",) * len(heads)]
    for repro in repros:
        found = (on(repro, stack, evidence) or "·" for stack in stacks)
        rows.append((repro.id, ", ".join(devices(repro, evidence)) or "·", *found))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def sentence(repro: Repro, stacks: Sequence[Stack], evidence: Evidence) -> str:
    """Return the same for one failure in words: `fails on 2023-12 to 2024-06; clean on 2023-05, 2024-09 to current`."""
    state = {stack.name: on(repro, stack, evidence) for stack in stacks}
    parts = [
        f"{what} on {', '.join(_runs(state, what))}" for what in (FAILS, CLEAN, OTHERWISE) if what in state.values()
    ]
    return "; ".join(parts) or "not measured yet"


def on(repro: Repro, stack: Stack, evidence: Evidence) -> str:
    """Return what is known of a failure on a stack, from its failing variant on whatever devices it was run on."""
    verdicts = {
        one.seen["failing"].verdict
        for unit, one in evidence.items()
        if unit.repro == repro.id and unit.stack == stack.name and "failing" in one.seen
    }
    if not verdicts:
        return NOTHING
    return FAILS if verdicts <= SHOWN else CLEAN if verdicts <= ABSENT else OTHERWISE


def devices(repro: Repro, evidence: Evidence) -> list[str]:
    """Return the devices that a failure has evidence from."""
    return sorted({unit.device for unit in evidence if unit.repro == repro.id})


def _runs(state: dict[str, str], what: str) -> Iterator[str]:
    """Yield the stacks of one kind, neighbours together: `2023-12 to 2024-06`."""
    for kind, group in groupby(state, key=state.__getitem__):
        names = list(group)
        if kind == what:
            yield names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
