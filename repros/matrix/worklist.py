"""What there is to measure: catalogue x stacks, read off the locks, against the evidence. Nothing is made for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repros.engine.digest.inputs import inputs
from repros.engine.plan import CellSpec, plan
from repros.evidence.files import Evidence, Measurement
from repros.evidence.unit import Unit
from repros.model import Cell, Device, Environment, Stack
from repros.stacks.lock import read_lock

_GPUS = Path("/proc/driver/nvidia/gpus")
"""NVIDIA's driver lists its devices here."""

_GUESS = 4.0
"""Seconds a cell may take, where nothing of the kind has been measured."""


@dataclass
class WorkItem:
    """One unit, what it takes and what is known of it."""

    unit: Unit
    inputs: str
    known: Measurement | None
    specs: list[CellSpec] = field(default_factory=list)

    @property
    def variants(self) -> set[str]:
        """The variants that the stack's versions allow."""
        return {spec.variant.name for spec in self.specs}

    @property
    def fresh(self) -> bool:
        """Whether its evidence was measured with these inputs, all of it."""
        return self.known is not None and self.known.inputs == self.inputs and self.variants <= set(self.known.seen)


@dataclass(frozen=True)
class Worklist:
    """Everything that can be measured here, stack by stack."""

    stacks: tuple[Stack, ...]
    items: tuple[WorkItem, ...]
    impossible: int
    """Cells that these stacks or this machine cannot run."""

    def of(self, stack: Stack) -> list[WorkItem]:
        """Return the items of one stack."""
        return [item for item in self.items if item.unit.stack == stack.name]


def worklist(specs: Sequence[CellSpec], stacks: Sequence[Stack], evidence: Evidence) -> Worklist:
    """Return what there is to measure of the specs on these stacks."""
    drafts = {stack.name: stack for stack in stacks}
    environments = [draft(stack) for stack in stacks]
    items: dict[Unit, WorkItem] = {}
    impossible = 0
    for item in plan(specs, lambda _: environments):
        if not isinstance(item, Cell):
            impossible += 1
            continue
        stack = drafts[item.environment.name]
        unit = Unit(stack.name, item.repro.id, item.device.value, item.strategy)
        if unit not in items:
            items[unit] = WorkItem(unit, inputs(item.repro, stack, item.device), evidence.get(unit))
        items[unit].specs.append(CellSpec(item.repro, item.variant, item.strategy, item.device))
    return Worklist(tuple(stacks), tuple(items[unit] for unit in sorted(items)), impossible)


def draft(stack: Stack) -> Environment:
    """Return the stack's environment as its lock describes it, there or not."""
    versions = {pin.name: pin.version for pin in read_lock(stack.lock).values()}
    gpus = len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0
    counts = {Device.CPU: sys.maxsize, Device.SIM: sys.maxsize, Device.CUDA: gpus}
    return Environment(stack.name, Path(), stack.python, versions, counts)


def estimate(items: Sequence[WorkItem], evidence: Evidence) -> float:
    """Return about how many seconds the cells of these items take: as long as when they were last measured."""
    per_cell = [one.seconds / len(one.seen) for one in evidence.values() if one.seen]
    usual = sum(per_cell) / len(per_cell) if per_cell else _GUESS
    return sum(item.known.seconds if item.known else usual * len(item.specs) for item in items)
