"""A schedule is moved once for each step or each epoch, and is over when the training is.

## What it does
In a program with one optimizer. `schedule_moved_often` (possible): three times in a row a scheduler has moved exactly k
times as often as its optimizer has stepped, k being 2 or more; a schedule of known length is reported only if it
passes its end. `schedule_passed_end` (possible): a CosineAnnealingLR whose training goes on after T_max, up to twice as
long, so that the rate rises again. `schedule_unfinished`: OneCycleLR, or a schedule with as many steps as its optimizer
has made, that at the end has made less than half of them, and at most one for each four steps of the optimizer.

## Why is this bad?
The rate falls k times too fast, ends high, or stays in the warm-up.

## Example
`scheduler.step()` after each backward, in a loop that steps the optimizer after each second one.

## Known misses
Programs with several optimizers. Schedulers that accelerate moves once for each rank (see `schedule_ahead`). Schedules
that are moved by hand or by fractions of an epoch. A OneCycleLR of a training that is cut short.

## Cost
A comparison of two counts after steps 1, 2, 4, 8, ...
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

CHECKS = (
    Check(
        "schedule_moved_often",
        "a scheduler moves several times for each step of its optimizer",
        "`scheduler.step()` once after each `optimizer.step()`, or a schedule as long as its own moves",
    ),
    Check(
        "schedule_passed_end",
        "the rate of a cosine rises again, since the training is longer than T_max",
        "T_max as large as the number of times that the scheduler is stepped",
    ),
    Check(
        "schedule_unfinished",
        "a schedule that counts batches is stepped once for each epoch",
        'step it after each batch; in Lightning `{"scheduler": scheduler, "interval": "step"}`',
    ),
)

_TIMES = 3
_SLOW = 4
"""Steps of an optimizer for each move of its schedule, from which on the schedule is taken to count epochs."""


class _Made:
    """A scheduler, and how it has moved."""

    def __init__(self, scheduler: LRScheduler) -> None:
        self.name = type(scheduler).__name__
        self.place = user_location()
        self.state: Mapping[str, Any] = vars(scheduler)
        """Its attributes, which outlive it until its end is judged. They do not refer to it."""
        self.epoch = int(scheduler.last_epoch)
        self.steps = steps.get(scheduler.optimizer, 0)
        self.length = _length_of(scheduler)
        self.last = (self.steps, self.epoch, 0)
        """Its optimizer's steps, its own moves and the backward passes at the last inspected step."""
        self.ratio = 0
        self.times = 0
        self.per_step = 0
        """The backward passes of each step; 0 if these differ."""

    def note(self, number: int, backwards: int) -> bool:
        """Compare the moves since the last inspected step; return whether they were k for each step, once more."""
        before, self.last = self.last, (number, int(self.state["last_epoch"]), backwards)
        taken, moved, passed = (now - then for now, then in zip(self.last, before))
        ratio = moved // taken if taken > 0 and moved % taken == 0 else 0
        self.times = self.times + 1 if ratio == self.ratio else 1
        self.ratio, self.per_step = ratio, passed // taken if taken > 0 and passed % taken == 0 else 0
        return ratio > 1 and self.times >= _TIMES


class _Schedules:
    """The schedulers of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made: dict[int, tuple[weakref.ref[LRScheduler], _Made]] = {}
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._is_alone = True

    def scheduled(self, scheduler: LRScheduler) -> None:
        if getattr(scheduler, "optimizer", None) is None or not isinstance(scheduler.last_epoch, int):
            return
        reference = weakref.ref(scheduler, functools.partial(self._gone, id(scheduler)))
        self._made[id(scheduler)] = reference, _Made(scheduler)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        self._optimizers.add(optimizer)
        self._is_alone = self._is_alone and len(self._optimizers) == 1
        if not self._is_alone or not self._made or not self._watch.is_due(number):
            return
        for _, made in list(self._made.values()):
            if made.state["optimizer"] is optimizer and made.note(number, self._watch.count("after_backward")):
                self._report_often(made, number)

    def _report_often(self, made: _Made, number: int | None) -> None:
        ranks = _ranks()
        if "accelerate" in self._watch.events.wrappers and made.ratio == ranks:
            return
        if made.length and made.state["last_epoch"] <= made.length + made.ratio:
            return
        end = f", and passes its end, {made.length}" if made.length else ""
        reasons = {made.per_step: "the backward passes of a step", ranks: "the ranks"}
        why = f": as many as {reasons[made.ratio]}" if made.ratio in reasons else ""
        optimizer = type(made.state["optimizer"]).__name__
        text = f"possible: this {made.name} moves {made.ratio} times for each step of its {optimizer}{end}{why}"
        numbers = {"moves for each step": made.ratio}
        self._watch.report("schedule_moved_often", text, step=number, place=made.place, numbers=numbers)

    def _gone(self, key: int, _: object) -> None:
        _, made = self._made.pop(key, (None, None))
        if made is not None:
            self._judge(made)

    def ends(self) -> None:
        present, self._made = list(self._made.values()), {}
        for _, made in present:
            self._judge(made)

    def _judge(self, made: _Made) -> None:
        """Report a schedule that is over too early or too late, once its scheduler or the program is gone."""
        state, length = made.state, made.length
        moved, taken = int(state["last_epoch"]), steps.get(state["optimizer"], 0) - made.steps
        if not length or taken <= 0 or moved == made.epoch or not self._is_alone:
            return
        numbers = {"length": length, "moves": moved, "steps": taken}
        if made.ratio > 1 and made.times >= _TIMES:
            self._report_often(made, None)
        elif made.name == "CosineAnnealingLR" and 1 + 1.05 * length < moved <= 2 * length:
            text = (
                f"possible: this CosineAnnealingLR turns after {length} steps and has made {moved}: the rate rose again"
                f" from {_least(state):.3g} to {_rate(state):.3g} while the training went on"
            )
            self._watch.report("schedule_passed_end", text, place=made.place, numbers=numbers)
        elif 2 * moved < length and _SLOW * moved <= taken and (made.name == "OneCycleLR" or length == taken):
            text = (
                f"this {made.name} has made {moved} of its {length} steps in {taken} steps of its optimizer: it counts"
                " batches, and is stepped for each epoch"
            )
            self._watch.report("schedule_unfinished", text, place=made.place, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    schedules = _Schedules(watch)
    for name in ("scheduled", "after_inspected_step", "ends"):
        watch.listen(name, getattr(schedules, name))


def _length_of(scheduler: LRScheduler) -> int:
    """Return the number of steps after which a schedule is over; 0 for one without an end, or a warm-up."""
    state, name = vars(scheduler), type(scheduler).__name__
    if name in {"CosineAnnealingLR", "OneCycleLR", "PolynomialLR"}:
        length = state.get("T_max", state.get("total_steps", state.get("total_iters", 0)))
    elif name == "LinearLR" and state["end_factor"] < state["start_factor"]:
        length = state["total_iters"]
    elif name == "LambdaLR":  # those of transformers
        length = max(getattr(part, "keywords", {}).get("num_training_steps", 0) for part in state["lr_lambdas"])
    else:
        length = 0
    return length if isinstance(length, int) else 0


def _rate(state: Mapping[str, Any]) -> float:
    return float(state["optimizer"].param_groups[0]["lr"])


def _least(state: Mapping[str, Any]) -> float:
    least = state.get("eta_min", 0.0)
    return float(least[0] if isinstance(least, (list, tuple)) else least)


def _ranks() -> int:
    distributed: Any = sys.modules.get("torch.distributed")
    is_used = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if is_used else 1
