"""A training that resumes from a checkpoint restores what belongs to its optimizer.

## What it does
`rate_reset`: reports that a scheduler's state is loaded that belongs to the learning rate which the optimizer was
loaded with and no longer has. `schedule_not_restored`: reports, at the second rate after a load, a schedule that begins
anew. For LambdaLR, OneCycleLR and CosineAnnealingWarmRestarts, which compute from the first rate: the load had changed
the rate, and the scheduler existed, was at its beginning and was not loaded. For CosineAnnealingLR, StepLR,
MultiStepLR, SequentialLR, PolynomialLR and LinearLR, which count from their own beginning, also if they are made after
the load: the optimizer was loaded with a state and a rate below its `initial_lr`. `scaler_not_restored`: reports the
first step of an enabled GradScaler with the default scale that was not loaded, if its optimizer was, with a state.

## Why is this bad?
The resumed training has another learning rate than it would have had, often the initial one, and the loss jumps; or the
scaler skips its first steps.

## Example
`optimizer.load_state_dict(...)`, then `scheduler = LambdaLR(optimizer, ...)`, whose constructor sets the first rate.

## Known misses
ExponentialLR and others that multiply the present rate without a count. Rates that the program has set after the load.
Schedulers that were stepped forward before the training. Scalers that were given a scale. States that were loaded after
the training had begun (a roll-back). The epoch of a sampler and random generators, whose owner may have no state to
restore.

## Cost
Nothing in a step, except one look at the rate while a scheduler is suspected.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.amp import GradScaler
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

CHECKS = (
    Check("rate_reset", "a scheduler that is made after the optimizer was loaded overwrites the loaded rate"),
    Check("schedule_not_restored", "a schedule begins anew with an optimizer in the middle of one"),
    Check("scaler_not_restored", "a GradScaler searches its scale anew for a loaded optimizer"),
)

_ABSOLUTE = {"LambdaLR", "OneCycleLR", "CosineAnnealingWarmRestarts"}
_COUNTING = {"CosineAnnealingLR", "StepLR", "MultiStepLR", "SequentialLR", "PolynomialLR", "LinearLR"}
"""Schedulers that continue from the present rate, by their own count."""
_DEFAULT_SCALE = 65536.0


class _Restored:
    """The loaded optimizers, and the schedulers and scalers that were made and stepped."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._rates: weakref.WeakKeyDictionary[Optimizer, list[float]] = weakref.WeakKeyDictionary()
        """The rates that each optimizer was loaded with."""
        self._before: weakref.WeakKeyDictionary[Optimizer, list[float]] = weakref.WeakKeyDictionary()
        self._schedulers: weakref.WeakSet[LRScheduler] = weakref.WeakSet()
        self._suspects: weakref.WeakKeyDictionary[Optimizer, list[weakref.ref[LRScheduler]]] = (
            weakref.WeakKeyDictionary()
        )
        """Schedulers at their beginning whose optimizer was loaded in the middle of a schedule."""
        self._unmoved: weakref.WeakSet[LRScheduler] = weakref.WeakSet()
        """Suspects at their beginning in a backward after the load: the program does not step them forward."""
        self._fresh: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        """Optimizers that were loaded with a state and have not stepped since."""
        self._scalers: weakref.WeakSet[GradScaler] = weakref.WeakSet()
        """Scalers that were loaded or have stepped."""

    def loading(self, optimizer: Optimizer, *_: object) -> None:
        self._before[optimizer] = _rates(optimizer)

    def loaded(self, optimizer: Optimizer, *_: object) -> None:
        rates = self._rates[optimizer] = _rates(optimizer)
        if optimizer.state:
            self._fresh.add(optimizer)
            self._watch.listen("before_step", self.before_step)
        if rates == self._before.pop(optimizer, rates):
            return
        suspects = [
            scheduler
            for scheduler in self._schedulers
            if scheduler.optimizer is optimizer and scheduler.last_epoch == 0
        ]
        if suspects:
            kinds = _ABSOLUTE | _COUNTING if _is_midway(optimizer) else _ABSOLUTE
            self._suspect(optimizer)[:] = [
                weakref.ref(scheduler) for scheduler in suspects if type(scheduler).__name__ in kinds
            ]

    def scheduled(self, scheduler: LRScheduler) -> None:
        self._schedulers.add(scheduler)
        optimizer = getattr(scheduler, "optimizer", None)
        is_new = type(scheduler).__name__ in _COUNTING and optimizer in self._fresh and scheduler.last_epoch == 0
        # One that has a rate of its own sets it at once.
        if is_new and _is_midway(optimizer) and _rates(optimizer) == self._rates[optimizer]:
            self._suspect(optimizer).append(weakref.ref(scheduler))

    def _suspect(self, optimizer: Optimizer) -> list[weakref.ref[LRScheduler]]:
        self._watch.listen_to(self, "before_backward", "before_step")
        return self._suspects.setdefault(optimizer, [])

    def schedule_loaded(self, scheduler: LRScheduler, state: object = None, *_: object) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if optimizer is None:
            return
        self._suspects.pop(optimizer, None)
        rates, present = self._rates.get(optimizer), _rates(optimizer)
        expected = state.get("_last_lr") if isinstance(state, dict) else None
        if expected is not None and rates == [float(rate) for rate in expected] and present != rates:
            text = (
                f"the optimizer was loaded with the rate {rates[0]:g}, which its scheduler has reset to {present[0]:g}"
            )
            self._watch.report("rate_reset", text, numbers={"loaded": rates[0], "used": present[0]})

    def before_backward(self) -> None:
        if not self._suspects:
            self._watch.ignore("before_backward", self.before_backward)
        for suspects in list(self._suspects.values()):
            self._unmoved.update(scheduler for scheduler in _live(suspects) if scheduler.last_epoch == 0)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        if not self._fresh and not self._suspects:
            self._watch.ignore("before_step", self.before_step)
            return
        self._fresh.discard(optimizer)
        suspects = self._suspects.get(optimizer)
        if suspects is None:
            return
        loaded, present = self._rates[optimizer], _rates(optimizer)
        if present == loaded and any(scheduler.last_epoch == 0 for scheduler in _live(suspects)):
            return  # the schedule has not moved yet
        del self._suspects[optimizer]
        for scheduler in _live(suspects):
            name = type(scheduler).__name__
            has_turned = present not in (loaded, []) or name in _COUNTING
            # Not the number of the step: GradScaler may have skipped the ones before.
            if scheduler in self._unmoved and has_turned and _last(scheduler) == present:
                text = (
                    f"the optimizer was loaded in the middle of a schedule, at the rate {loaded[0]:g},"
                    f" and {name} begins anew: {present[0]:g}"
                )
                numbers = {"loaded": loaded[0], "used": present[0]}
                self._watch.report("schedule_not_restored", text, step=number, numbers=numbers, names=[name])
                return

    def scaler_loaded(self, scaler: GradScaler) -> None:
        self._scalers.add(scaler)

    def scaler_steps(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        if scaler in self._scalers:
            return
        self._scalers.add(scaler)
        inner = getattr(optimizer, "optimizer", optimizer)
        if inner in self._fresh and scaler.is_enabled() and getattr(scaler, "_init_scale", None) == _DEFAULT_SCALE:
            text = f"the optimizer goes on from a loaded state, and its GradScaler begins anew at {_DEFAULT_SCALE:g}"
            self._watch.report("scaler_not_restored", text, numbers={"scale": _DEFAULT_SCALE})


def listen(watch: Watch) -> None:
    """Attach the checks."""
    checks = _Restored(watch)
    observed = ("loading", "loaded", "scheduled", "schedule_loaded")
    watch.listen_to(checks, *observed, "scaler_loaded", "scaler_steps")


def _rates(optimizer: Optimizer) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]


def _is_midway(optimizer: Optimizer) -> bool:
    """Return whether a schedule has lowered the rate of an optimizer that has stepped."""
    groups = optimizer.param_groups
    return bool(optimizer.state) and any(float(group["lr"]) < float(group.get("initial_lr", 0)) for group in groups)


def _live(references: list[weakref.ref[LRScheduler]]) -> list[LRScheduler]:
    return [scheduler for scheduler in (reference() for reference in references) if scheduler is not None]


def _last(scheduler: LRScheduler) -> list[float]:
    return [float(rate) for rate in getattr(scheduler, "_last_lr", ())]
