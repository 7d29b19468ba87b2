"""What accelerate accumulates over several micro-batches reaches the step whole.

## What it does
`clipped_while_accumulating`: reports a norm of gradients that is clipped, and made smaller by that, while
`accelerator.sync_gradients` is False, if the next backward adds to them. `accumulated_gradients_zeroed`: reports
gradients that are zeroed after a prepared optimizer has left out a step to accumulate them and before its next step,
without another micro-batch that is left out in between.

## Why is this bad?
The micro-batches of a step have different weights, or all but the last are lost.

## Example
`accelerator.clip_grad_norm_(...)` without `if accelerator.sync_gradients:`.

## Known misses
Norms below the limit, and an infinite limit. Gradients that are clipped by value. Gradients that are zeroed with no
step after them (a remainder that is dropped, a micro-batch that is skipped).

## Cost
A transfer of one number for each of the first 8 clippings while gradients are accumulated, and for the inspected ones
after them; one look at the gradients for each `zero_grad` while a step waits.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.accelerators import gradient_state
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("clipped_while_accumulating", "gradients are clipped before all micro-batches of a step have added to them"),
    Check("accumulated_gradients_zeroed", "the gradients of all micro-batches but the last are zeroed before the step"),
)

_FIRST = 8


class _IncompleteClips:
    """The clippings of gradients that are not complete."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._count = 0
        self._pending: tuple[float, float, str | None] | None = None
        """The norm, the limit and the location of a clipping that no backward has followed yet."""

    def clipped(self, most: float, norm: Tensor) -> None:
        state = gradient_state()
        if state is None or state.sync_gradients or state.num_steps < 2:  # noqa: PLR2004 - nothing is accumulated
            return
        self._count += 1
        if self._count > _FIRST and not self._watch.is_due(self._count):
            return
        value, limit = float(norm), float(most)
        if math.isfinite(value) and value > limit:
            self._pending = value, limit, user_location()
            self._watch.listen("before_backward", self.before_backward)

    def forget(self, *_: object) -> None:
        if self._pending is not None:
            self._pending = None
            self._watch.ignore("before_backward", self.before_backward)

    def before_backward(self) -> None:
        pending = self._pending
        self.forget()
        if pending is not None:
            norm, limit, place = pending
            text = (
                f"gradients are clipped from a norm of {norm:.3g} to {limit:.3g} while accelerate accumulates them,"
                " and the next micro-batch is added to what is left"
            )
            numbers = {"norm": norm, "clipped to": limit}
            self._watch.report("clipped_while_accumulating", text, numbers=numbers, place=place)


class _LateZeroing:
    """The optimizers whose steps wait for more micro-batches."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._waiting: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        """The number of steps that each has left out since its last one."""
        self._lost: weakref.WeakKeyDictionary[Optimizer, tuple[int, str | None]] = weakref.WeakKeyDictionary()
        """Those whose gradients were zeroed since: the number of their micro-batches, and the location."""

    def step_waits(self, optimizer: Optimizer) -> None:
        optimizer = getattr(optimizer, "optimizer", optimizer)
        self._lost.pop(optimizer, None)
        self._waiting[optimizer] = self._waiting.get(optimizer, 0) + 1
        self._watch.listen_to(self, "zeroing", "before_step")

    def zeroing(self, list_parameters: Callable[[], list[Parameter]]) -> None:
        zeroed = {id(parameter) for parameter in list_parameters() if parameter.grad is not None}
        for optimizer, waits in list(self._waiting.items()):
            if any(id(parameter) in zeroed for parameter in parameters_of(optimizer)):
                del self._waiting[optimizer]
                self._lost[optimizer] = waits, user_location()

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        self._waiting.pop(optimizer, None)
        waits, place = self._lost.pop(optimizer, (0, None))
        if not self._waiting and not self._lost:
            self._watch.ignore_from(self, "zeroing", "before_step")
        if waits:
            text = (
                f"the gradients of {waits} micro-batch{'es' if waits > 1 else ''} are zeroed, although the optimizer"
                " has left out the step to accumulate them: the step uses those of the last one alone"
            )
            self._watch.report("accumulated_gradients_zeroed", text, step=number, place=place)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    clipped, zeroed = _IncompleteClips(watch), _LateZeroing(watch)
    watch.listen("clipped", clipped.clipped)
    watch.listen("zeroing", clipped.forget)
    watch.listen("step_waits", zeroed.step_waits)
