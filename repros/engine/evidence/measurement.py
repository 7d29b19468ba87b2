"""Measurements: what the cells of one unit showed, when, and on which versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from repros.model import Verdict

if TYPE_CHECKING:
    from repros.engine.record import RecordLine  # for the types alone; `repros list` starts without it


from repros.model import Cell, Device, cell_label


@dataclass(frozen=True, order=True)
class Unit:
    """One repro x strategy x device x stack: all variants, measured with the same inputs."""

    stack: str
    repro: str
    device: Device
    strategy: str

    @classmethod
    def of_cell(cls, cell: Cell) -> Unit:
        """Return the unit that a cell belongs to."""
        return cls(cell.environment.name, cell.repro.id, cell.device, cell.strategy)

    def cell_label(self, variant: str) -> str:
        """Return the label of one variant's cell: `RPR-0001 failing ddp sim 2023-12`."""
        return cell_label(self.repro, variant, self.strategy, self.device, self.stack)

    def __str__(self) -> str:
        """Return the label that the unit's cells share: `RPR-0001 ddp sim 2023-12`."""
        return f"{self.repro} {self.strategy} {self.device} {self.stack}"


@dataclass(frozen=True)
class VariantVerdict:
    """The verdict of one variant's cell."""

    verdict: Verdict
    signature: str | None = None
    """The failure as observed, normalised; None when nothing failed."""


@dataclass(frozen=True)
class Measurement:
    """The evidence for one unit."""

    unit: Unit
    inputs: str
    """Inputs digest, from :func:`repros.engine.digest.inputs.inputs`."""
    date: dt.date
    launch: str
    platform: str
    python: str
    versions: Mapping[str, str]
    """Installed versions of the packages that the repro names."""
    processes: int
    seconds: float
    """Time that the cells took, one after another."""
    variants: Mapping[str, VariantVerdict]
    """Verdicts by the variant's name."""
    processor: float | None = None
    """Seconds of processor time of the cells' processes; None for measurements from before it was recorded."""

    @classmethod
    def from_lines(cls, unit: Unit, inputs: str, date: dt.date, lines: Sequence[RecordLine]) -> Self:
        """Build the measurement from the record lines of the unit's cells, at least one."""
        first = lines[0]
        assert first["launch"] is not None  # a measured cell was launched
        return cls(
            unit=unit,
            inputs=inputs,
            date=date,
            launch=first["launch"],
            platform=first["platform"],
            python=first["stack"]["python"],
            versions={name: number for line in lines for name, number in line["stack"]["versions"].items()},
            processes=first["processes"],
            seconds=round(sum(line["seconds"] or 0.0 for line in lines), 1),
            variants={line["variant"]: VariantVerdict(Verdict(line["verdict"]), line["signature"]) for line in lines},
            processor=_sum_if_all(line.get("processor") for line in lines),
        )


def _sum_if_all(numbers: Iterable[float | None]) -> float | None:
    found = list(numbers)
    known = [number for number in found if number is not None]
    return round(sum(known), 1) if len(known) == len(found) else None


Evidence = dict[Unit, Measurement]
