"""What headers say against what was measured: a range that the evidence contradicts is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.catalogue import Catalogue
from repros.evidence.files import Evidence, Measurement
from repros.model import Cell, Device, Environment, Expectation, Outcome, Repro, Verdict
from repros.model.requirements import format_requirement

SHOWN = {Verdict.REPRODUCED, Verdict.REGRESSED, Verdict.UNFIXED}
"""Verdicts of cells that showed the documented failure, expected or not."""

ABSENT = {Verdict.CLEAN, Verdict.GONE}
"""Verdicts of cells that ran to their end."""


@dataclass(frozen=True)
class Contradiction:
    """A variant that a header expects to do one thing on versions on which it was measured to do another."""

    repro: Repro
    variant: str
    measured: Measurement
    expected: Expectation

    def __str__(self) -> str:
        """Return one sentence: what the header says, and what was seen where."""
        variant = self.repro.variant(self.variant)
        assert variant is not None
        ranges = ", ".join(format_requirement(requirement) for requirement in variant.affected) or "every release"
        seen = self.measured.seen[self.variant]
        found = "showed the documented failure" if seen.verdict in SHOWN else "ran to its end"
        versions = ", ".join(f"{name} {number}" for name, number in sorted(self.measured.versions.items()))
        return (
            f"{self.measured.unit} {self.variant}: the header documents that it {self.expected.outcome} (affected: "
            f"{ranges}); on {self.measured.date} it {found} with {versions}"
        )


def contradictions(catalogue: Catalogue, evidence: Evidence) -> Iterator[Contradiction]:
    """Yield what the evidence contradicts; evidence of variants and repros that are no more is passed over.

    What ended in another failure, or not always alike, says nothing about a range.
    """
    repros = {repro.id: repro for repro in catalogue}
    for unit, measured in evidence.items():
        repro = repros.get(unit.repro)
        for name, seen in measured.seen.items() if repro else ():
            assert repro is not None
            cell = _cell(repro, name, measured)
            if cell is None or seen.verdict not in SHOWN | ABSENT:
                continue
            if (seen.verdict in SHOWN) is not (cell.expectation.outcome is Outcome.FAILS):
                yield Contradiction(repro, name, measured, cell.expectation)


def _cell(repro: Repro, name: str, measured: Measurement) -> Cell | None:
    """Return the cell as it was measured, with what its header says today."""
    variant, unit = repro.variant(name), measured.unit
    if variant is None:
        return None
    there = Environment(unit.stack, Path(), measured.python, measured.versions)
    return Cell(repro, variant, unit.strategy, Device(unit.device), there, measured.processes)
