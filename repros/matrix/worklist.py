"""The worklist: the measurement units of selected repros and stacks, planned from the locks, without an environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.plan import CellSpec, plan
from repros.evidence import Evidence, Measurement, Unit
from repros.model import Cell, Stack

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
    return Worklist(tuple(stacks), tuple(entries[unit] for unit in sorted(entries)), unavailable)


def pending(entries: Iterable[WorklistEntry], *, include_fresh: bool = False) -> list[WorklistEntry]:
    """Return the entries to measure: those without fresh evidence, or all of them."""
    return [entry for entry in entries if include_fresh or not entry.fresh]


def estimate_seconds(entries: Iterable[WorklistEntry], evidence: Evidence) -> float:
    """Estimate how long the entries take one after another: as long as last time, or else the average per cell."""
    per_cell = [one.seconds / len(one.variants) for one in evidence.values() if one.variants]
    average = sum(per_cell) / len(per_cell) if per_cell else _SECONDS_PER_CELL
    return sum(entry.last.seconds if entry.last else average * len(entry.specs) for entry in entries)
