"""An optimizer's steps have something to do.

Check: `steps_without_gradients`.

Speaks: when an optimizer's first four steps find no gradient in any of its parameters, although a backward ran before
each: it holds other parameters than those that are trained.
Silent: after the first step that found a gradient.
Costs: a look for one gradient in each step up to the first that has one.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..observe.optimizers import parameters_of
from ..watch import Watch

_STEPS = 4
"""A closure may skip a batch now and then, so one step without gradients means nothing."""


def listen(watch: Watch) -> None:
    """Attach the check."""
    empty: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
    has_gradients: weakref.WeakSet[Any] = weakref.WeakSet()
    backwards = 0

    def after_backward() -> None:
        nonlocal backwards
        backwards += 1

    def after_step(optimizer: Any, number: int) -> None:
        if optimizer in has_gradients:
            return
        if any(parameter.grad is not None for parameter in parameters_of(optimizer)):
            has_gradients.add(optimizer)
            return
        steps, seen = empty.get(optimizer, (0, 0))
        steps += backwards > seen
        empty[optimizer] = (steps, backwards)
        if steps == _STEPS:
            name = type(optimizer).__name__
            text = f"none of the parameters that this {name} holds ever had a gradient, in {number} steps"
            watch.find("steps_without_gradients", text, once=(id(optimizer),), step=number)

    watch.listen("after_backward", after_backward)
    watch.listen("after_step", after_step)
