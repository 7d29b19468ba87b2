"""What the evidence shows of one failure: on which devices it was measured, and on which stacks it occurs."""

from __future__ import annotations

from enum import StrEnum

from repros.engine.evidence.measurement import Evidence
from repros.engine.evidence.unit import Unit
from repros.model import Device, Repro, Stack


class StackStatus(StrEnum):
    """Whether a failure occurs on a stack, as measured."""

    FAILS = "fails"
    CLEAN = "clean"
    DIFFERS = "differs"
    """Measured, but the failing variant neither showed the documented failure nor ran clean on every device."""


def stack_status(repro: Repro, stack: Stack, evidence: Evidence) -> StackStatus | None:
    """Return whether a failure occurs on a stack, from its failing variant on all devices; None if not measured."""
    units = (Unit(stack.name, repro.id, device, name) for device in Device for name in repro.strategies)
    measured = (evidence[unit].variants for unit in units if unit in evidence)
    verdicts = {variants["failing"].verdict for variants in measured if "failing" in variants}
    if not verdicts:
        return None
    if all(verdict.shows_failure for verdict in verdicts):
        return StackStatus.FAILS
    return StackStatus.CLEAN if all(verdict.ran_clean for verdict in verdicts) else StackStatus.DIFFERS


def measured_devices(repro: Repro, evidence: Evidence) -> list[Device]:
    """Return the devices on which a failure was measured, in alphabetical order."""
    return sorted({unit.device for unit in evidence if unit.repro == repro.id})
