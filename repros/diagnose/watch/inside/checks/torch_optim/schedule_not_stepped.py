"""A learning rate scheduler is stepped, as often as it counts.

## What it does
`schedule_not_stepped`: reports, at the program's end, an optimizer that has been trained in four passes over data since
a scheduler was made for it, if no scheduler of it has moved. `schedule_turns`: reports a CosineAnnealingLR with a
`T_max` of at most 100 that has gone down and up again within one pass over the data, a step for each step of its
optimizer.

## Why is this bad?
The learning rate stays at its first value, or oscillates.

## Example
`CosineAnnealingLR(optimizer, T_max=epochs)` that is stepped for each batch.

## Known misses
Rates that the program has set by hand. SWALR, which begins late, and ReduceLROnPlateau. Data from no DataLoader.
Processes that are killed. A longer `T_max`, which is a cycle on purpose.

## Cost
One look at the schedulers when a pass begins, and at the end.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

CHECKS = (
    Check(
        "schedule_not_stepped",
        "a scheduler is made, and never stepped",
        "`scheduler.step()` after each `optimizer.step()`, or after each epoch if it counts epochs",
    ),
    Check("schedule_turns", "a schedule in epochs is stepped for each batch, so that the rate rises again"),
)

_PASSES = 4
_LONGEST = 100
_LATE = {"SWALR", "ReduceLROnPlateau"}


class _Made:
    """A scheduler's state when it was made, and when the last pass began."""

    def __init__(self, scheduler: LRScheduler) -> None:
        self.reference: weakref.ref[LRScheduler] = weakref.ref(scheduler)
        self.name = type(scheduler).__name__
        self.optimizer: weakref.ref[Optimizer] = weakref.ref(scheduler.optimizer)
        self.rates = _rates(scheduler.optimizer)
        self.passes = 0
        """The passes in which its optimizer was trained."""
        self.steps = steps.get(scheduler.optimizer, 0)
        """Its optimizer's steps when the present pass began."""
        self.epoch = int(scheduler.last_epoch)
        """Its `last_epoch` at that time."""
        self.has_moved = self.epoch != 0


class _Schedules:
    """The schedulers, and the passes over data."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made: dict[int, _Made] = {}

    def scheduled(self, scheduler: LRScheduler) -> None:
        if getattr(scheduler, "optimizer", None) is not None and isinstance(scheduler.last_epoch, int):
            made = self._made[id(scheduler)] = _Made(scheduler)
            # One that nothing steps is often local to a function, and deleted before the program ends.
            made.reference = weakref.ref(scheduler, functools.partial(self._gone, id(scheduler)))

    def pass_begins(self, *_: object) -> None:
        for made in list(self._made.values()):
            scheduler = made.reference()
            if scheduler is None:
                continue
            taken, moved = steps.get(scheduler.optimizer, 0) - made.steps, scheduler.last_epoch - made.epoch
            made.has_moved = scheduler.last_epoch != 0 or _rates(scheduler.optimizer) != made.rates
            if taken > 0:
                made.passes += 1
                made.steps, made.epoch = made.steps + taken, scheduler.last_epoch
                if made.name == "CosineAnnealingLR" and moved == taken:
                    self._check_for_turn(scheduler, moved)

    def _check_for_turn(self, scheduler: LRScheduler, moved: int) -> None:
        period = scheduler.T_max
        if period <= _LONGEST and moved >= 2 * period and period > 1:
            text = (
                f"this CosineAnnealingLR goes down in {period} steps and up in as many, in a pass of {moved} batches:"
                " is its T_max in epochs?"
            )
            self._watch.report("schedule_turns", text, numbers={"T_max": period, "batches": moved})

    def _gone(self, key: int, _: object) -> None:
        made = self._made.pop(key, None)
        optimizer = made.optimizer() if made is not None else None
        if made is not None:
            made.passes += optimizer is not None and steps.get(optimizer, 0) > made.steps
            self._judge(made, [*self._made.values(), made])

    def ends(self) -> None:
        self.pass_begins()
        present = list(self._made.values())
        self._made.clear()
        for made in present:
            self._judge(made, present)

    def _judge(self, made: _Made, present: list[_Made]) -> None:
        has_moved = any(other.has_moved for other in present if other.optimizer is made.optimizer)
        if made.name in _LATE or has_moved or made.passes < _PASSES:
            return
        text = f"{made.name} was never stepped in {made.passes} passes over the data: the rate stays {made.rates[0]:g}"
        numbers = {"passes": made.passes, "rate": made.rates[0]}
        self._watch.report("schedule_not_stepped", text, numbers=numbers, place=None)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    schedules = _Schedules(watch)
    watch.listen_to(schedules, "scheduled", "pass_begins", "ends")


def _rates(optimizer: Optimizer) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
