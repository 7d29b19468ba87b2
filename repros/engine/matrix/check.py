"""Results compared with evidence: which cells disagree, and whether that is news or trouble. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from repros.engine.evidence import Evidence, Unit
from repros.engine.record import RecordLine, latest
from repros.model import Category, Device, Verdict


@dataclass(frozen=True)
class EvidenceDisagreement:
    """A cell whose verdict differs from its evidence."""

    unit: Unit
    variant: str
    verdict: Verdict
    evidence: Verdict | None
    """None when there is no evidence."""

    @property
    def category(self) -> Category:
        """News or trouble; a verdict that agrees with the header but not with the evidence is trouble, too."""
        return Category.NEWS if self.verdict.category is Category.NEWS else Category.TROUBLE

    def __str__(self) -> str:
        """Return `news: RPR-0001 failing ddp sim 2023-12 is gone; its evidence says reproduced`."""
        known = f"its evidence says {self.evidence}" if self.evidence else "it has no evidence"
        return f"{self.category}: {self.unit.cell_label(self.variant)} is {self.verdict}; {known}"


def find_disagreements(lines: Iterable[RecordLine], evidence: Evidence) -> list[EvidenceDisagreement]:
    """Return the judged cells whose verdict differs from their evidence.

    A cell without evidence is compared with its own header instead, because a repro is added before it is measured.
    A user's own environment has no evidence.

    Args:
        lines: Record lines; if a cell has several, the last counts.
        evidence: The evidence to compare with.
    """
    found = []
    for line in latest(lines):
        unit = Unit(line["stack"]["name"], line["repro"], Device(line["device"]), line["strategy"])
        known = evidence[unit].variants.get(line["variant"]) if unit in evidence else None
        verdict = Verdict(line["verdict"])
        if verdict.category in {Category.SKIPPED, Category.NOT_JUDGED}:
            continue
        agrees = verdict.category is Category.AGREES if known is None else verdict is known.verdict
        if not agrees:
            found.append(EvidenceDisagreement(unit, line["variant"], verdict, known.verdict if known else None))
    return found
