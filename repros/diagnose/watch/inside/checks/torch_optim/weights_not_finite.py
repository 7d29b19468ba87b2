"""A step changes the parameters and leaves them finite.

## What it does
`weights_not_finite`: reports a training that goes on (the next backward, or the program's end) with a parameter that is
infinite or NaN since an inspected step, and was finite before the first. `parameters_unchanged`: reports, at step 32,
an optimizer whose gradients are not zero and none of whose parameters has changed in any bit.
`steps_of_zero_gradients`: reports an optimizer whose first four steps found all gradients exactly 0, each time zeroed
between the last backward and the step.

## Why is this bad?
The network is lost, or learns nothing.

## Example
`loss.backward(); optimizer.zero_grad(); optimizer.step()`; a learning rate of 1e-9 for weights in bfloat16, which
rounds away each update.

## Known misses
Parameters that were not finite before the first step, such as a mask. Steps that were undone before the next backward.
Steps that GradScaler skips. `parameters_unchanged` reports nothing for a rate of 0 that a scheduler has moved on fewer
than 16 times, as in a warm-up by epochs, or that the program has set by hand. None report for DTensors, and while a
CUDA graph is captured.

## Cost
One reduction over the parameters before the first step and at every second inspected step, over the small ones at the
others; a copy of the three smallest parameters until one has changed, and if none has, a reduction at steps 8 and 32;
one look at gradients in the first four steps, where they were zeroed late.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.values import bit_sums, find_not_finite, is_capturing, is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

CHECKS = (
    Check(
        "weights_not_finite",
        "parameters are infinite or NaN, and the training goes on",
        "`repros watch --first-nan` names the origin; clip the gradients or lower the rate",
    ),
    Check(
        "parameters_unchanged",
        "an optimizer's steps change none of its parameters",
        "raise the rate: it is 0, or its steps are smaller than the parameters' precision",
    ),
    Check(
        "steps_of_zero_gradients",
        "gradients are zeroed between the backward and the step",
        "`zero_grad()` before the backward or after the step, and not between them",
    ),
)

_FIRST_INSPECTION, _LAST_INSPECTION = 8, 32
_STEPS = 4
_SMALL = 1 << 16
"""Elements up to which a parameter is checked in each inspected step."""
_SCHEDULED = 16
"""Scheduler steps with a rate of 0 from which on it is no warm-up."""


class _Finite:
    """The parameters of each optimizer that were finite before its first step."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._before: weakref.WeakKeyDictionary[Optimizer, set[int]] = weakref.WeakKeyDictionary()
        """The parameters that were not finite before the first step, by `id`."""
        self._suspects: list[tuple[weakref.ref[Parameter], int, int]] = []
        """A parameter that is not finite after a step, the step's number, and the number of such parameters."""
        self._found: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def before_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if number == 1 and not is_capturing():
            self._before[optimizer] = {id(bad) for bad in find_not_finite(_plain(optimizer), self._watch.known())}

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        before = self._before.get(optimizer) if self._watch.is_due(number) else None
        if before is None or optimizer in self._found or is_capturing():
            return
        not_finite = find_not_finite(_representative(_plain(optimizer), number), self._watch.known())
        bad = [parameter for parameter in not_finite if id(parameter) not in before]
        if bad:
            self._found.add(optimizer)
            self._suspects.append((weakref.ref(bad[0]), number, len(bad)))
            for name in ("before_backward", "ends"):
                self._watch.listen(name, self.goes_on)

    def goes_on(self) -> None:
        """Report the last steps' parameters that are still not finite: a program may have undone a step."""
        if is_capturing():
            return
        suspects, self._suspects = self._suspects, []
        for name in ("before_backward", "ends"):
            self._watch.ignore(name, self.goes_on)
        for reference, number, count in suspects:
            parameter = reference()
            if parameter is None or not is_plain(parameter) or not find_not_finite([parameter], self._watch.known()):
                continue
            text = f"{count} parameters are infinite or not a number after step {number}, and were finite before"
            self._watch.report("weights_not_finite", text, step=number, numbers={"parameters": count})


class _Start:
    """The initial state of an optimizer whose parameters have not changed yet."""

    def __init__(self, optimizer: Optimizer) -> None:
        smallest = sorted(_plain(optimizer), key=lambda parameter: int(parameter.numel()))[:3]
        self.probes = [(parameter, parameter.detach().clone()) for parameter in smallest]
        self.sums: list[int] | None = None
        self.schedules: list[int] = []

    def has_moved(self) -> bool:
        """Return whether one of the smallest parameters has changed."""
        import torch

        return any(
            parameter.shape != copy.shape or not torch.equal(parameter.detach(), copy.to(parameter.device))
            for parameter, copy in self.probes
        )


class _Moved:
    """The optimizers whose parameters have not changed yet."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._starts: weakref.WeakKeyDictionary[Optimizer, _Start] = weakref.WeakKeyDictionary()
        self._schedulers: weakref.WeakSet[LRScheduler] = weakref.WeakSet()

    def scheduled(self, scheduler: LRScheduler) -> None:
        self._schedulers.add(scheduler)

    def before_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        held = parameters_of(optimizer) if number == 1 else []
        if held and all(map(is_plain, held)) and not is_capturing():
            start = self._starts[optimizer] = _Start(optimizer)
            start.schedules = self._epochs(optimizer)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        start = self._starts.get(optimizer) if self._starts and self._watch.is_due(number) else None
        if start is None:
            return
        if is_capturing() or start.has_moved() or number > _LAST_INSPECTION:
            del self._starts[optimizer]
        elif number == _FIRST_INSPECTION:
            start.sums = bit_sums(_plain(optimizer))
            if not _has_gradient(optimizer):
                del self._starts[optimizer]
        elif number == _LAST_INSPECTION:
            del self._starts[optimizer]
            is_same = start.sums is not None and start.sums == bit_sums(_plain(optimizer))
            if is_same and _has_gradient(optimizer) and self._is_meant_to_move(optimizer, start):
                self._report(optimizer, number)

    def _epochs(self, optimizer: Optimizer) -> list[int]:
        its = [scheduler for scheduler in self._schedulers if getattr(scheduler, "optimizer", None) is optimizer]
        return [int(scheduler.last_epoch) for scheduler in its]

    def _is_meant_to_move(self, optimizer: Optimizer, start: _Start) -> bool:
        if getattr(optimizer, "found_inf", None) is not None:
            return False
        if any(_rates(optimizer)):
            return True
        epochs = self._epochs(optimizer)
        if epochs or "initial_lr" in optimizer.param_groups[0]:
            return max(epochs, default=0) - max(start.schedules, default=0) >= _SCHEDULED
        return not float(optimizer.defaults.get("lr", 0.0))

    def _report(self, optimizer: Optimizer, number: int) -> None:
        rate, kinds = max(_rates(optimizer), default=0.0), {str(p.dtype) for p in parameters_of(optimizer)}
        why = f"its rate is {rate:g}" + (f", lost in the rounding of {', '.join(sorted(kinds))}" if rate else "")
        text = f"none of the parameters of this {type(optimizer).__name__} has changed in {number} steps: {why}"
        self._watch.report("parameters_unchanged", text, step=number, numbers={"rate": rate})


class _Zeroed:
    """Whether gradients were zeroed since the last backward."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._counts: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if number > _STEPS or not self._watch.is_later("zeroing", "after_backward") or is_capturing():
            return
        gradients = [parameter.grad for parameter in parameters_of(optimizer) if parameter.grad is not None]
        if not gradients or not all(map(is_plain, gradients)) or any(bool(gradient.any()) for gradient in gradients):
            return
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if self._counts[optimizer] == _STEPS:
            text = f"the gradients of this {type(optimizer).__name__} are zeroed after the backward, before each step"
            self._watch.report("steps_of_zero_gradients", text, step=number)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    finite, moved, zeroed = _Finite(watch), _Moved(watch), _Zeroed(watch)
    if watch.is_enabled("weights_not_finite"):
        watch.listen_to(finite, "before_inspected_step", "after_inspected_step")
    watch.listen_to(moved, "scheduled", "before_inspected_step", "after_inspected_step")
    watch.listen("after_inspected_step", zeroed.after_inspected_step)


def _representative(parameters: list[Parameter], number: int) -> list[Parameter]:
    """Return the parameters to check at a step.

    At steps 2, 8, 32, ... these are the small ones, such as biases: a backward through a parameter with NaN makes their
    gradients NaN, too. At the other steps they are all.
    """
    if number & (number - 1) or number.bit_length() % 2:
        return parameters
    return [parameter for parameter in parameters if parameter.numel() <= _SMALL] or parameters


def _plain(optimizer: Optimizer) -> list[Parameter]:
    return [parameter for parameter in parameters_of(optimizer) if is_plain(parameter)]


def _rates(optimizer: Optimizer) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]


def _has_gradient(optimizer: Optimizer) -> bool:
    gradients = [parameter.grad for parameter in parameters_of(optimizer) if parameter.grad is not None]
    return any(is_plain(gradient) and bool(gradient.any()) for gradient in gradients)
