"""The worklist: the measurement units of selected repros and stacks, planned from the locks, without an environment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.evidence import Evidence, Measurement, Unit
from repros.model import Cell, Device, Environment, Repro, Stack
from repros.model.catalogue import Catalogue

_SECONDS_PER_CELL = 4.0
"""Assumed while there is no evidence at all."""


@dataclass
class WorklistEntry:
    """One measurement unit, its cells and its last measurement."""

    unit: Unit
    inputs: str
    """Inputs digest as of now."""
    last: Measurement | None
    specs: list[CellSpec] = field(default_factory=list)

    @property
    def variants(self) -> set[str]:
        """The variants that can run on the stack's versions."""
        return {spec.variant.name for spec in self.specs}

    @property
    def fresh(self) -> bool:
        """Whether the last measurement has today's inputs and covers every variant."""
        return self.last is not None and self.last.inputs == self.inputs and self.variants <= set(self.last.variants)


@dataclass(frozen=True)
class Worklist:
    """All units that can be measured on this machine, stack by stack."""

    stacks: tuple[Stack, ...]
    entries: tuple[WorklistEntry, ...]
    unavailable: int
    """Cells that these stacks or this machine cannot run."""
    obsolete: tuple[Measurement, ...] = ()
    """Measurements of units that no machine can run any more: the header or the stack has changed since."""

    def on_stack(self, stack: Stack) -> list[WorklistEntry]:
        """Return the entries of one stack."""
        return [entry for entry in self.entries if entry.unit.stack == stack.name]


def build_worklist(specs: Sequence[CellSpec], stacks: Sequence[Stack], evidence: Evidence) -> Worklist:
    """Plan the specs on these stacks and look up what was measured before."""
    by_name = {stack.name: stack for stack in stacks}
    environments = [locked_environment(stack) for stack in stacks]
    entries: dict[Unit, WorklistEntry] = {}
    unavailable = 0
    for item in plan(specs, lambda _: environments):
        if not isinstance(item, Cell):
            unavailable += 1
            continue
        unit = Unit.of_cell(item)
        if unit not in entries:
            digest = inputs(item.repro, by_name[unit.stack], item.device)
            entries[unit] = WorklistEntry(unit, digest, evidence.get(unit))
        entries[unit].specs.append(CellSpec(item.repro, item.variant, item.strategy, item.device))
    repros = list(dict.fromkeys(spec.repro for spec in specs))
    obsolete = _find_obsolete(repros, environments, evidence)
    return Worklist(tuple(stacks), tuple(entries[unit] for unit in sorted(entries)), unavailable, obsolete)


def _find_obsolete(
    repros: Sequence[Repro], environments: Sequence[Environment], evidence: Evidence
) -> tuple[Measurement, ...]:
    """Return the measurements of these repros on these stacks that could not be made on any machine."""
    anywhere = [replace(environment, counts=dict.fromkeys(Device, sys.maxsize)) for environment in environments]
    cells = (item for item in plan(select(Catalogue(tuple(repros)), Selection()), lambda _: anywhere))
    possible = {Unit.of_cell(cell) for cell in cells if isinstance(cell, Cell)}
    ids, names = {repro.id for repro in repros}, {environment.name for environment in environments}
    return tuple(
        measurement
        for unit, measurement in sorted(evidence.items())
        if unit.repro in ids and unit.stack in names and unit not in possible
    )


def pending(entries: Iterable[WorklistEntry], *, include_fresh: bool = False) -> list[WorklistEntry]:
    """Return the entries to measure: those without fresh evidence, or all of them."""
    return [entry for entry in entries if include_fresh or not entry.fresh]


def estimate_seconds(entries: Iterable[WorklistEntry], evidence: Evidence) -> float:
    """Estimate how long the entries take one after another: as long as last time, or else the average per cell."""
    per_cell = [
        measurement.seconds / len(measurement.variants) for measurement in evidence.values() if measurement.variants
    ]
    average = sum(per_cell) / len(per_cell) if per_cell else _SECONDS_PER_CELL
    return sum(entry.last.seconds if entry.last else average * len(entry.specs) for entry in entries)


def find_trouble(worklist: Worklist, evidence: Evidence) -> Iterator[tuple[Unit, str]]:
    """Yield each unit and variant of the worklist whose evidence decides nothing: `different` and `flaky`.

    What contradicts a header, :mod:`repros.matrix.ranges` finds.
    """
    for entry in worklist.entries:
        measured = evidence.get(entry.unit)
        for name, variant in sorted(measured.variants.items()) if measured else ():
            if not (variant.verdict.shows_failure or variant.verdict.ran_clean):
                yield entry.unit, name
