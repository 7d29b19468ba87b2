"""Measurements: the verdicts of one unit's cells, with date and versions."""

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
    """The unit of measurement, one repro x strategy x device x stack: all variants, measured with the same inputs."""

    stack: str
    repro: str
    device: Device
    strategy: str

    @classmethod
    def from_cell(cls, cell: Cell) -> Unit:
        """Return the unit of a cell."""
        return cls(cell.environment.name, cell.repro.id, cell.device, cell.strategy)

    def cell_label(self, variant: str) -> str:
        """Return the label of one variant's cell: `RPR-0001 failing ddp sim 2023-12`."""
        return cell_label(self.repro, variant, self.strategy, self.device, self.stack)

    def __str__(self) -> str:
        """Return the common part of the cells' labels: `RPR-0001 ddp sim 2023-12`."""
        return f"{self.repro} {self.strategy} {self.device} {self.stack}"


@dataclass(frozen=True)
class VariantVerdict:
    """The verdict of one variant's cell."""

    verdict: Verdict
    signature: str | None = None
    """The observed failure, normalised; None without a failure."""


@dataclass(frozen=True)
class Measurement:
    """The evidence for one unit."""

    unit: Unit
    inputs: str
    """Inputs digest of :func:`repros.engine.digest.inputs.inputs`."""
    date: dt.date
    launch: str
    platform: str
    python: str
    versions: Mapping[str, str]
    """Installed versions of the packages that the repro names."""
    processes: int
    seconds: float
    """Total duration of the cells."""
    variants: Mapping[str, VariantVerdict]
    """Verdicts by variant."""
    processor: float | None = None
    """CPU seconds of the cells' processes; None in measurements from before it was recorded."""

    @classmethod
    def from_lines(cls, unit: Unit, inputs: str, date: dt.date, lines: Sequence[RecordLine]) -> Self:
        """Return the measurement of at least one record line, those of the unit's cells."""
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
    values = list(numbers)
    known = [number for number in values if number is not None]
    return round(sum(known), 1) if len(known) == len(values) else None


Evidence = dict[Unit, Measurement]
