"""What is measured at one go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Unit:
    """One repro under one strategy on one device of one stack: all its variants, run with the same inputs."""

    stack: str
    repro: str
    device: str
    strategy: str

    def __str__(self) -> str:
        """Return it as cells are named: `RPR-0001 ddp sim 2023-12`."""
        return f"{self.repro} {self.strategy} {self.device} {self.stack}"
