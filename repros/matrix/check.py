"""Observation against evidence: where they disagree, and whether that is news or trouble. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from repros.evidence.files import Evidence, Measurement
from repros.evidence.unit import Unit
from repros.model import Category, Verdict
from repros.text import table


@dataclass(frozen=True)
class Disagreement:
    """A cell that was not seen as its evidence says."""

    unit: Unit
    variant: str
    seen: Verdict
    evidence: Verdict | None
    """None where there is none."""

    @property
    def category(self) -> Category:
        """News or trouble; what agrees with its header but not with its evidence is trouble too."""
        return Category.NEWS if self.seen.category is Category.NEWS else Category.TROUBLE

    def __str__(self) -> str:
        """Return `news: RPR-0001 failing ddp sim 2023-12 is gone; its evidence says reproduced`."""
        unit = self.unit
        cell = f"{unit.repro} {self.variant} {unit.strategy} {unit.device} {unit.stack}"
        known = f"its evidence says {self.evidence}" if self.evidence else "there is no evidence of it"
        return f"{self.category}: {cell} is {self.seen}; {known}"


def against(lines: Iterable[Mapping[str, Any]], evidence: Evidence) -> list[Disagreement]:
    """Return the cells that were judged and that their evidence does not bear out.

    A cell without evidence disagrees only when it does not agree with its own header either: a repro is added before
    it is measured. Environments of a user's own have no evidence.

    Args:
        lines: record lines, of which the last counts where several are of one cell.
        evidence: what is known.
    """
    found = []
    for line in table.latest(lines):
        unit = Unit(line["stack"]["name"], line["repro"], line["device"], line["strategy"])
        known = evidence[unit].seen.get(line["variant"]) if unit in evidence else None
        verdict = Verdict(line["verdict"])
        if verdict.category is Category.SKIPPED or (known is None and verdict.category is Category.AGREES):
            continue
        if known is None or known.verdict is not verdict:
            found.append(Disagreement(unit, line["variant"], verdict, known.verdict if known else None))
    return found


@dataclass(frozen=True)
class Split:
    """A variant that a device and the real one do not agree on."""

    real: Measurement
    other: Measurement
    variant: str

    def __str__(self) -> str:
        """Return both sides in one line."""
        one, two = self.real.seen[self.variant], self.other.seen[self.variant]
        return (
            f"{self.real.unit} {self.variant}: {one.verdict} ({one.signature}) on {self.real.unit.device}, "
            f"{two.verdict} ({two.signature}) on {self.other.unit.device}"
        )


def splits(evidence: Evidence, real: str = "cuda", other: str = "sim") -> Iterator[Split]:
    """Yield where the evidence of two devices differs in verdict or signature; only what both have is compared."""
    for unit, measured in evidence.items():
        twin = evidence.get(Unit(unit.stack, unit.repro, other, unit.strategy))
        if unit.device != real or twin is None:
            continue
        for variant, seen in measured.seen.items():
            if variant in twin.seen and twin.seen[variant] != seen:
                yield Split(measured, twin, variant)
