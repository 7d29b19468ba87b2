"""What the matrix costs, stack by stack: cells, seconds and bytes, from the evidence and the stacks' own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repros.evidence.files import EVIDENCE, Evidence
from repros.model import Stack

_HEADS = ("Stack", "torch", "Lightning", "Cells", "Seconds", "A cell", "GB to download", "GB on disk", "kB of evidence")
_GIGA, _KILO = 1e9, 1e3


def table(stacks: Sequence[Stack], evidence: Evidence, folder: Path = EVIDENCE) -> str:
    """Return a table in Markdown: a row for each stack and one for all of them.

    Seconds are those of the cells one after another. Sizes are those with torch's CUDA build, and in brackets with
    its CPU build where that was measured.

    Args:
        stacks: The rows.
        evidence: What was measured.
        folder: Where it lies, for its bytes.
    """
    rows = [_HEADS, ("---",) * len(_HEADS)]
    every = [0.0] * 5
    for stack in stacks:
        measured = [one for unit, one in evidence.items() if unit.stack == stack.name]
        cells, seconds = sum(len(one.seen) for one in measured), sum(one.seconds for one in measured)
        kept = sum(file.stat().st_size for file in folder.glob(f"{stack.name}/*.toml"))
        amounts = (cells, seconds, stack.cuda.download, stack.cuda.unpacked, kept)
        every = [total + amount for total, amount in zip(every, amounts, strict=True)]
        told = _told(*amounts)
        if stack.cpu:
            told[3] += f" ({stack.cpu.download / _GIGA:.1f})"
            told[4] += f" ({stack.cpu.unpacked / _GIGA:.1f})"
        rows.append((stack.name, *(_pin(stack, name) for name in ("torch", "lightning")), *told))
    rows.append(("all", "", "", *_told(*every)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _told(cells: float, seconds: float, download: float, unpacked: float, kept: float) -> list[str]:
    each = f"{seconds / cells:.1f}" if cells else "·"
    return [
        f"{cells:.0f}",
        f"{seconds:.0f}",
        each,
        f"{download / _GIGA:.1f}",
        f"{unpacked / _GIGA:.1f}",
        f"{kept / _KILO:.0f}",
    ]


def _pin(stack: Stack, package: str) -> str:
    pins = (str(one.specifier).removeprefix("==") for one in stack.requirements if one.name == package)
    return next(pins, "·")
