"""Consistency of results, evidence and headers; no I/O.

New results are compared with evidence, and evidence with the affected ranges of headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.evidence import Evidence, Measurement, Unit
from repros.engine.record import RecordLine, latest
from repros.model import Category, Cell, Device, Environment, Expectation, ExpectedOutcome, Repro, Verdict
from repros.model.affected import affected_text
from repros.model.catalogue import Catalogue


@dataclass(frozen=True)
class EvidenceDisagreement:
    """A cell whose verdict differs from its evidence."""

    unit: Unit
    variant: str
    verdict: Verdict
    evidence: Verdict | None
    """None without evidence."""

    @property
    def category(self) -> Category:
        """News or trouble; a verdict that agrees with the header but not with the evidence is trouble."""
        return Category.NEWS if self.verdict.category is Category.NEWS else Category.TROUBLE

    def __str__(self) -> str:
        """Return `news: RPR-0001 failing ddp sim 2023-12 is gone; its evidence says reproduced`."""
        known = f"its evidence says {self.evidence}" if self.evidence else "it has no evidence"
        return f"{self.category}: {self.unit.cell_label(self.variant)} is {self.verdict}; {known}"


def find_disagreements(lines: Iterable[RecordLine], evidence: Evidence) -> list[EvidenceDisagreement]:
    """Return the judged cells whose verdict differs from their evidence.

    A cell without evidence is compared with its header, since repros are added before they are measured, and a user's
    own environment has no evidence.

    Args:
        lines: Record lines; of several lines of a cell, the last counts.
        evidence: The evidence to compare with.
    """
    disagreements = []
    for line in latest(lines):
        unit = Unit(line["stack"]["name"], line["repro"], Device(line["device"]), line["strategy"])
        known = evidence[unit].variants.get(line["variant"]) if unit in evidence else None
        verdict = Verdict(line["verdict"])
        if verdict.category in {Category.SKIPPED, Category.NOT_JUDGED}:
            continue
        agrees = verdict.category is Category.AGREES if known is None else verdict is known.verdict
        if not agrees:
            disagreements.append(EvidenceDisagreement(unit, line["variant"], verdict, known.verdict if known else None))
    return disagreements


@dataclass(frozen=True)
class RangeContradiction:
    """A measurement on versions for which the header documents another outcome."""

    repro: Repro
    variant: str
    measurement: Measurement
    expected: Expectation

    def __str__(self) -> str:
        """Return one sentence with the documented outcome and the measured one."""
        variant = self.repro.variant(self.variant)
        assert variant is not None
        ranges = affected_text(variant.affected)
        verdict = self.measurement.variants[self.variant].verdict
        observed = "showed the documented failure" if verdict.shows_failure else "ran to its end"
        versions = ", ".join(f"{name} {number}" for name, number in sorted(self.measurement.versions.items()))
        return (
            f"{self.measurement.unit} {self.variant}: the header documents that it {self.expected.outcome} (affected: "
            f"{ranges}); on {self.measurement.date} it {observed} with {versions}"
        )


def find_contradictions(catalogue: Catalogue, evidence: Evidence) -> Iterator[RangeContradiction]:
    """Yield each variant whose evidence contradicts its header.

    Evidence of deleted variants and repros is skipped, and so are the verdicts `different` and `flaky`, which do not
    decide whether a version is affected.
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
    """Return the cell on the measured versions, with its current expectation; None for a deleted variant."""
    variant, unit = repro.variant(name), measurement.unit
    if variant is None:
        return None
    environment = Environment(unit.stack, Path(), measurement.python, measurement.versions)
    return Cell(repro, variant, unit.strategy, unit.device, environment, measurement.processes)
