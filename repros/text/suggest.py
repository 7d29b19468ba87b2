"""Suggest the header lines that document the signature of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from repros.engine.signature import normalise
from repros.model import CellResult, Ending, Process

_LONGEST = 160
"""Characters of a suggested message; a signature is a part of the message."""


def suggest_signature(results: Sequence[CellResult]) -> Iterator[str]:
    """Yield the header lines for each distinct signature of the results, with its cells."""
    cells: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        if result.observation is not None:
            ranks = sorted(result.observation.ranks, key=lambda process: process.ending is not Ending.RAISED)
            cell = result.cell
            where = f"{cell.environment.name} {cell.device} {cell.strategy}"
            cells.setdefault(tuple(_header_lines(ranks[0])) if ranks else ("(no rank)",), []).append(where)
    for lines, names in cells.items():
        yield f"the failing variant on {', '.join(names)}:"
        yield from (f"  # {line}" for line in lines)


def _header_lines(process: Process) -> Iterator[str]:
    if process.ending is Ending.RAISED:
        for raised in process.chain:
            first = normalise(raised.message.strip().partition("\n")[0])
            yield f"raises = {json.dumps(raised.name)}"
            yield f"match = {json.dumps(first[:_LONGEST], ensure_ascii=False)}"
    elif process.ending is Ending.TIMED_OUT:
        yield 'ends = "hang"'
    elif process.ending is Ending.EXITED:
        yield f'ends = "exit {process.code}"'
    elif process.ending is Ending.SIGNALLED:
        yield f'ends = "signal {process.signal}"'
    else:
        yield "(it returned: no failure)"
