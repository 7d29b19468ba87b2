"""Headers compared with evidence: an affected range that a measurement contradicts is wrong. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.evidence import Evidence, Measurement
from repros.model import Cell, Environment, Expectation, ExpectedOutcome, Repro
from repros.model.catalogue import Catalogue
from repros.model.ranges import affected_text


@dataclass(frozen=True)
class RangeContradiction:
    """A variant that did one thing on versions for which its header documents the other."""

    repro: Repro
    variant: str
    measurement: Measurement
    expected: Expectation

    def __str__(self) -> str:
        """Return one sentence: what the header documents, and what was measured where."""
        variant = self.repro.variant(self.variant)
        assert variant is not None
        ranges = affected_text(variant.affected)
        verdict = self.measurement.variants[self.variant].verdict
        found = "showed the documented failure" if verdict.shows_failure else "ran to its end"
        versions = ", ".join(f"{name} {number}" for name, number in sorted(self.measurement.versions.items()))
        return (
            f"{self.measurement.unit} {self.variant}: the header documents that it {self.expected.outcome} (affected: "
            f"{ranges}); on {self.measurement.date} it {found} with {versions}"
        )


def find_contradictions(catalogue: Catalogue, evidence: Evidence) -> Iterator[RangeContradiction]:
    """Yield each variant whose evidence contradicts its header.

    Evidence of removed variants and repros is skipped. A variant that ended in another failure, or not always in the
    same way, says nothing about a range.
    """
    repros = {repro.id: repro for repro in catalogue}
    for unit, measurement in evidence.items():
        repro = repros.get(unit.repro)
        if repro is None:
            continue
        for name, variant in measurement.variants.items():
            cell = measured_cell(repro, name, measurement)
            if cell is None or not (variant.verdict.shows_failure or variant.verdict.ran_clean):
                continue
            if variant.verdict.shows_failure is not (cell.expectation.outcome is ExpectedOutcome.FAILS):
                yield RangeContradiction(repro, name, measurement, cell.expectation)


def measured_cell(repro: Repro, name: str, measurement: Measurement) -> Cell | None:
    """Return the cell on the measured versions, with what its header documents today; None for a removed variant."""
    variant, unit = repro.variant(name), measurement.unit
    if variant is None:
        return None
    environment = Environment(unit.stack, Path(), measurement.python, measurement.versions)
    return Cell(repro, variant, unit.strategy, unit.device, environment, measurement.processes)
