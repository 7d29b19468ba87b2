"""Cells: one thing to run, or the reason why it is not run."""

from __future__ import annotations

from dataclasses import dataclass

from repros.model.affected import Overlap, evaluate
from repros.model.environment import Environment
from repros.model.repro import Device, ExpectedOutcome, Repro, Signature, Variant


@dataclass(frozen=True)
class Expectation:
    """What a variant is documented to do on one environment."""

    outcome: ExpectedOutcome
    affected: bool
    """Whether the environment's versions lie in the affected range."""
    is_fix: bool
    """Whether the variant passes because it is a fix, and not because these versions are unaffected."""
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
    """Ranks expected: the repro's, or fewer on a machine with fewer GPUs."""
    gpus: tuple[str, ...] = ()
    """The GPUs that it was given, as CUDA_VISIBLE_DEVICES names them: an index, `GPU-<uuid>` or `MIG-<uuid>`."""

    @property
    def expectation(self) -> Expectation:
        """What the header documents for the installed versions."""
        affected = evaluate(self.variant.affected, self.environment.compare) is Overlap.ALL
        fails = affected and self.variant.outcome is ExpectedOutcome.FAILS
        return Expectation(
            outcome=ExpectedOutcome.FAILS if fails else ExpectedOutcome.PASSES,
            affected=affected,
            is_fix=affected and self.variant.outcome is ExpectedOutcome.PASSES,
            signature=self.variant.signature,
        )

    @property
    def label(self) -> str:
        """The cell in one line: `RPR-0001 failing ddp sim 2023-12`."""
        return cell_label(self.repro.id, self.variant.name, self.strategy, self.device, self.environment.name)


def cell_label(repro: str, variant: str, strategy: str, device: Device, environment: str) -> str:
    """Return the one line that names a cell: `RPR-0001 failing ddp sim 2023-12`."""
    return f"{repro} {variant} {strategy} {device} {environment}"


@dataclass(frozen=True)
class Unavailable:
    """A cell that is not run, and why."""

    cell: Cell
    reason: str
