"""The measurement unit."""

from __future__ import annotations

from dataclasses import dataclass

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
