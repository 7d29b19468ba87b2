"""Cells: one run of a variant with its expectation, or the reason why it cannot run."""

from __future__ import annotations

from dataclasses import dataclass

from repros.model.affected import Overlap, evaluate
from repros.model.environment import Environment
from repros.model.kinds import Device, ExpectedOutcome
from repros.model.raised import Ending
from repros.model.repro import Repro, Signature, Variant


@dataclass(frozen=True)
class Expectation:
    """The documented outcome of a variant in one environment."""

    outcome: ExpectedOutcome
    affected: bool
    """Whether the environment's versions lie in the affected range."""
    is_fix: bool
    """Whether the variant passes because of a fix, not because these versions are unaffected."""
    signature: Signature


@dataclass(frozen=True)
class Cell:
    """Repro x variant x strategy x device on an environment."""

    repro: Repro
    variant: Variant
    strategy: str
    device: Device
    environment: Environment
    processes: int
    """World size: the repro's `processes`, or fewer on a machine with fewer GPUs."""
    gpus: tuple[str, ...] = ()
    """Assigned GPUs, as in CUDA_VISIBLE_DEVICES: an index, `GPU-<uuid>` or `MIG-<uuid>`."""

    @property
    def expectation(self) -> Expectation:
        """The documented outcome for the installed versions."""
        affected = evaluate(self.variant.affected, self.environment.compare) is Overlap.ALL
        fails = affected and self.variant.outcome is ExpectedOutcome.FAILS
        return Expectation(
            outcome=ExpectedOutcome.FAILS if fails else ExpectedOutcome.PASSES,
            affected=affected,
            is_fix=affected and self.variant.outcome is ExpectedOutcome.PASSES,
            signature=self.variant.signature,
        )

    @property
    def is_documented_hang(self) -> bool:
        """Whether the header documents a hang for the installed versions."""
        expected = self.expectation
        ends = expected.signature.ends
        return expected.outcome is ExpectedOutcome.FAILS and ends is not None and ends.ending is Ending.TIMED_OUT

    @property
    def label(self) -> str:
        """One line: `RPR-0001 failing ddp sim 2023-12`."""
        return cell_label(self.repro.id, self.variant.name, self.strategy, self.device, self.environment.name)


def cell_label(repro: str, variant: str, strategy: str, device: Device, environment: str) -> str:
    """Return the label of a cell: `RPR-0001 failing ddp sim 2023-12`."""
    return f"{repro} {variant} {strategy} {device} {environment}"


@dataclass(frozen=True)
class Unavailable:
    """A cell that cannot run, and the reason."""

    cell: Cell
    reason: str
