"""What a process has shown to the checks so far: the event `seen`, at steps 1, 2, 4, 8, ... and at the end.

It counts the optimizers' steps and those that were inspected in full, and lists which parts of a training were used:
a check of a part that no process uses does not apply. A process that is killed has written what it showed until then.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch.optim import Optimizer

_PARTS = {
    "GradScaler": ("scaling", "scaler_steps"),
    "DataLoader": ("pass_begins",),
    "scheduler": ("scheduled",),
}
"""The observations of each part of a training that not every program has."""


class _Seen:
    """What the checks of this process were shown."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: list[str] = []
        self._inspected = 0

    def begins(self) -> None:
        self._optimizers, self._inspected = [], 0
        if "torch" in sys.modules:
            self._write()

    def imported(self, _: ModuleType) -> None:
        if self._watch.options is not None:
            self._write()

    def before_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if type(optimizer).__name__ not in self._optimizers:
            self._optimizers.append(type(optimizer).__name__)
        self._inspected += self._watch.is_due(number)
        if number & (number - 1) == 0:
            self._write()

    def ends(self) -> None:
        if "torch" in sys.modules:
            self._write()

    def _write(self) -> None:
        count = self._watch.count
        self._watch.events.write(
            "seen",
            steps=count("before_step"),
            inspected=self._inspected,
            optimizers=self._optimizers,
            parts=[part for part, observations in _PARTS.items() if any(map(count, observations))],
            first_nan=self._watch.is_requested("nan"),
        )


def attach(watch: Watch) -> None:
    """Count from now on."""
    seen = _Seen(watch)
    for name in ("begins", "before_inspected_step", "ends"):
        watch.observe(name, getattr(seen, name))
    when_imported("torch", seen.imported)
