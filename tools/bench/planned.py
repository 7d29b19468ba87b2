"""Plans of the engine's schedule for cells on this machine and on others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from repros.engine.evidence.timings import recorded_timings
from repros.engine.inventory import Inventory
from repros.engine.matrix.worklist import WorklistEntry, build_worklist, forecast
from repros.engine.plan import CellSpec
from repros.engine.record import RecordLine
from repros.engine.run_options import RunOptions, Timings
from repros.engine.schedule import Timing
from repros.engine.stacks import stack
from repros.model import Cell
from repros.model.settings import PACKAGE

_MEMORY = 4 * 2**30
"""Bytes for each core of another machine."""


@dataclass(frozen=True)
class Other:
    """Another machine, or a cluster of several alike, which counts as one machine with the room of all."""

    name: str
    cores: int
    """Of all nodes."""
    gpus: int = 0
    """Of one node."""
    nodes: int = 1

    @property
    def inventory(self) -> Inventory:
        """What it has for cells."""
        return Inventory(self.cores, self.cores * _MEMORY, tuple(map(str, range(self.gpus * self.nodes))))


OTHERS = (
    *(Other(f"{cores} cores", cores) for cores in (4, 8, 16)),
    Other("16 cores, 8 GPUs", 16, 8),
    Other("4 nodes, each with 16 cores and 8 GPUs", 64, 8, 4),
)


class Plans:
    """What the schedule plans for cells, from the seconds that they took in the evidence or in a run."""

    def __init__(self, stack_name: str) -> None:
        """Read the evidence."""
        self._stack = stack(stack_name)
        self.evidence = recorded_timings(PACKAGE)

    def seconds(
        self,
        specs: Sequence[CellSpec],
        timings: Timings,
        inventory: Inventory,
        *,
        gpus: int = 0,
        jobs: int | None = None,
    ) -> float:
        """Return the seconds on a machine with this number of GPUs per node."""
        return round(forecast(self._entries(specs, gpus), RunOptions(jobs=jobs, timings=timings), inventory), 1)

    def cells(self, specs: Sequence[CellSpec], gpus: int = 0) -> list[Cell]:
        """Return the cells that such a machine can run."""
        return [cell for entry in self._entries(specs, gpus) for cell in entry.cells]

    def _entries(self, specs: Sequence[CellSpec], gpus: int) -> Sequence[WorklistEntry]:
        return build_worklist(specs, [self._stack], {}, gpus).entries

    def timings_of(self, lines: Iterable[RecordLine]) -> Timings:
        """Return what the cells took in a run, from its lines; cells without a run count as in the evidence."""
        known = {
            (line["repro"], line["variant"], line["strategy"], line["device"]): Timing(
                line["seconds"], line.get("processor")
            )
            for line in lines
            if line["seconds"] is not None
        }
        return lambda cell: known.get(_key(cell), self.evidence(cell))


def _key(cell: Cell) -> tuple[str, str, str, str]:
    return cell.repro.id, cell.variant.name, cell.strategy, cell.device.value
