"""Observation against evidence: where they disagree, and whether that is news or trouble. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repros.matrix.evidence import Evidence, Measurement
from repros.matrix.unit import Unit
from repros.model import Result, Tone, Verdict


@dataclass(frozen=True)
class Disagreement:
    """A cell that was not seen as its evidence says."""

    unit: Unit
    variant: str
    seen: Verdict
    evidence: Verdict | None
    """None where there is none."""

    @property
    def tone(self) -> Tone:
        """News or trouble; what agrees with its header but not with its evidence is trouble too."""
        return Tone.NEWS if self.seen.tone is Tone.NEWS else Tone.TROUBLE

    def __str__(self) -> str:
        """Return `news: RPR-0001 failing ddp sim 2023-12 is gone; its evidence says reproduced`."""
        unit = self.unit
        cell = f"{unit.repro} {self.variant} {unit.strategy} {unit.device} {unit.stack}"
        known = f"its evidence says {self.evidence}" if self.evidence else "there is no evidence of it"
        return f"{self.tone}: {cell} is {self.seen}; {known}"


def against(results: Iterable[Result], evidence: Evidence) -> list[Disagreement]:
    """Return the cells that were judged and that their evidence does not bear out.

    A cell without evidence disagrees only when it does not agree with its own header either: a repro is added before
    it is measured.
    """
    found = []
    for result in results:
        cell = result.cell
        unit = Unit(cell.environment.name, cell.repro.id, cell.device.value, cell.strategy)
        known = evidence[unit].seen.get(cell.variant.name) if unit in evidence else None
        tone = result.verdict.tone
        if tone is Tone.SKIP or (known is None and tone is Tone.AGREES):
            continue
        if known is None or known.verdict is not result.verdict:
            known_verdict = known.verdict if known else None
            found.append(Disagreement(unit, cell.variant.name, result.verdict, known_verdict))
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
