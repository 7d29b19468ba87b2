"""Status of a failure by stack and device, as measured, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from packaging.utils import canonicalize_name

from repros.engine.evidence.measurement import Evidence, Unit
from repros.model import Device, Repro, Stack


class StackStatus(StrEnum):
    """Whether a failure occurs on a stack, as measured."""

    FAILS = "fails"
    CLEAN = "clean"
    DIFFERS = "differs"
    """Neither the documented failure on every device, nor clean on every device."""


def stack_status(repro: Repro, stack: Stack, evidence: Evidence) -> StackStatus | None:
    """Return the status of a failure on a stack, from its failing variant on all devices; None if not measured."""
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


_CANNOT_RUN = "cannot run"


def describe_stacks(repro: Repro, stacks: Sequence[Stack], evidence: Evidence) -> str:
    """Return the status on all stacks: `fails on 2023-12 to 2024-06; clean on 2024-09; cannot run on 2023-05`.

    The failure may also exist on stacks where the script cannot run.
    """
    by_stack = {stack.name: _word(repro, stack, evidence) for stack in stacks}
    words = [word for word in (*StackStatus, _CANNOT_RUN) if word in by_stack.values()]
    parts = [f"{word} on {', '.join(_stack_spans(by_stack, word))}" for word in words]
    return "; ".join(parts) if words and words != [_CANNOT_RUN] else "not measured yet"


def _word(repro: Repro, stack: Stack, evidence: Evidence) -> str | None:
    """Return the status of a stack, or that the script cannot run on its releases; None if unknown."""
    pins = {canonicalize_name(pinned.name): pinned.specifier for pinned in stack.requirements}
    for needed in repro.needs(repro.failing):
        for pin in pins.get(canonicalize_name(needed.name), ()):
            if not needed.specifier.contains(pin.version, prereleases=True):
                return _CANNOT_RUN
    return stack_status(repro, stack, evidence)


def _stack_spans(by_stack: dict[str, str | None], status: str) -> Iterator[str]:
    """Yield the ranges of neighbouring stacks with one status: `2023-12 to 2024-06`."""
    for current, group in groupby(by_stack, key=by_stack.__getitem__):
        names = list(group)
        if current == status:
            yield names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
