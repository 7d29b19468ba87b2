"""The worklist: measurement units of selected repros and stacks, planned from locks without an environment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.evidence import Evidence, Measurement, Unit
from repros.engine.inventory import Inventory
from repros.engine.local import plan_slots
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.engine.run_options import RunOptions
from repros.engine.schedule import simulate
from repros.model import Cell, Device, Environment, Repro, Stack
from repros.model.catalogue import Catalogue

_SECONDS_PER_STACK = 6.0
"""Start-up time of a stack: the probe, and the imports of the first warm server."""


@dataclass
class WorklistEntry:
    """One measurement unit, its cells and its last measurement."""

    unit: Unit
    inputs: str
    """Current inputs digest."""
    last: Measurement | None
    cells: list[Cell] = field(default_factory=list)
    """Cells on the environment that the lock describes."""

    @property
    def specs(self) -> list[CellSpec]:
        """The cells without their environment."""
        return [CellSpec(cell.repro, cell.variant, cell.strategy, cell.device) for cell in self.cells]

    @property
    def variants(self) -> set[str]:
        """Variants that can run on the stack's versions."""
        return {cell.variant.name for cell in self.cells}

    @property
    def fresh(self) -> bool:
        """Whether the last measurement has the current inputs and every variant."""
        return self.last is not None and self.last.inputs == self.inputs and self.variants <= set(self.last.variants)


@dataclass(frozen=True)
class Worklist:
    """The units that can be measured on this machine, by stack."""

    stacks: tuple[Stack, ...]
    entries: tuple[WorklistEntry, ...]
    unavailable: int
    """Cells that these stacks or this machine cannot run."""
    obsolete: tuple[Measurement, ...] = ()
    """Measurements of units that no machine can run, since the header or the stack has changed."""

    def on_stack(self, stack: Stack) -> list[WorklistEntry]:
        """Return the entries of one stack."""
        return [entry for entry in self.entries if entry.unit.stack == stack.name]


def build_worklist(
    specs: Sequence[CellSpec], stacks: Sequence[Stack], evidence: Evidence, gpus: int | None = None
) -> Worklist:
    """Plan the specs on stacks, and look up their last measurements.

    Args:
        specs: the cells without environments.
        stacks: the stacks.
        evidence: the recorded measurements.
        gpus: number of GPUs; None: those of this machine.
    """
    by_name = {stack.name: stack for stack in stacks}
    environments = [locked_environment(stack) for stack in stacks]
    if gpus is not None:
        environments = [
            replace(environment, counts={**environment.counts, Device.CUDA: gpus}) for environment in environments
        ]
    entries: dict[Unit, WorklistEntry] = {}
    unavailable = 0
    for item in plan(specs, lambda _: environments):
        if not isinstance(item, Cell):
            unavailable += 1
            continue
        unit = Unit.from_cell(item)
        if unit not in entries:
            digest = inputs(item.repro, by_name[unit.stack], item.device)
            entries[unit] = WorklistEntry(unit, digest, evidence.get(unit))
        entries[unit].cells.append(item)
    repros = list(dict.fromkeys(spec.repro for spec in specs))
    obsolete = _find_obsolete(repros, environments, evidence)
    return Worklist(tuple(stacks), tuple(entries[unit] for unit in sorted(entries)), unavailable, obsolete)


def _find_obsolete(
    repros: Sequence[Repro], environments: Sequence[Environment], evidence: Evidence
) -> tuple[Measurement, ...]:
    """Return the measurements of repros on stacks that no machine could repeat."""
    anywhere = [replace(environment, counts=dict.fromkeys(Device, sys.maxsize)) for environment in environments]
    cells = (item for item in plan(select(Catalogue(tuple(repros)), Selection()), lambda _: anywhere))
    possible = {Unit.from_cell(cell) for cell in cells if isinstance(cell, Cell)}
    ids, names = {repro.id for repro in repros}, {environment.name for environment in environments}
    return tuple(
        measurement
        for unit, measurement in sorted(evidence.items())
        if unit.repro in ids and unit.stack in names and unit not in possible
    )


def pending(entries: Iterable[WorklistEntry], *, include_fresh: bool = False) -> list[WorklistEntry]:
    """Return the entries to measure: those without fresh evidence, or all of them."""
    return [entry for entry in entries if include_fresh or not entry.fresh]


def forecast(entries: Iterable[WorklistEntry], options: RunOptions, inventory: Inventory | None = None) -> float:
    """Return the estimated duration of entries in seconds, without making environments.

    The schedule of each stack's cells is simulated.

    Args:
        entries: the entries.
        options: how the cells will run, with their recorded timings.
        inventory: the resources; None: those of this machine now.
    """
    cells: dict[str, list[Cell]] = {}
    for entry in entries:
        cells.setdefault(entry.unit.stack, []).extend(entry.cells)
    return sum(
        _SECONDS_PER_STACK
        + simulate(
            *plan_slots(stack_cells, options.timings, inventory=inventory),
            jobs=options.jobs,
            share_gpus=options.share_gpus,
        )
        for stack_cells in cells.values()
    )


def find_trouble(worklist: Worklist, evidence: Evidence) -> Iterator[tuple[Unit, str]]:
    """Yield each unit and variant whose evidence is inconclusive: `different` or `flaky`.

    :mod:`repros.engine.matrix.check` finds evidence that contradicts a header.
    """
    for entry in worklist.entries:
        measured = evidence.get(entry.unit)
        for name, variant in sorted(measured.variants.items()) if measured else ():
            if not (variant.verdict.shows_failure or variant.verdict.ran_clean):
                yield entry.unit, name
