"""An optimizer's steps have gradients, and reach the parameters that are trained.

## What it does
`steps_without_gradients`: reports an optimizer whose first four steps find no gradient in any of its parameters,
although a backward ran before each. `parameters_replaced`: reports, after its fourth step, an optimizer of whose
parameters some never had a gradient and belong to nothing else, while modules that were called have as many trained
parameters, with gradients, that no optimizer holds.

## Why is this bad?
The optimizer holds other parameters than those that are trained: a layer, or the whole model, is never updated.

## Example
`model.head = nn.Linear(8, 10)` after `optimizer = Adam(model.parameters())`.

## Known misses
Optimizers after their first step with a gradient, or after their fourth. Parameters that a module, a dict, a list or an
attribute still holds. Parameters with gradients that no optimizer holds, if that is all, as in a fine-tuning of the
last layer.

## Cost
One look for gradients in each of the first four steps. If both halves of `parameters_replaced` are there, one search
for what refers to a parameter.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "steps_without_gradients",
        "none of an optimizer's parameters ever has a gradient",
        "make the optimizer from the parameters of the model that computes the loss",
    ),
    Check(
        "parameters_replaced",
        "some of an optimizer's parameters were replaced in the model after it was made",
        "make the optimizer after the last change of the model, such as a new head",
    ),
)

_STEPS = 4
"""A closure may skip a batch now and then, so one step without gradients means nothing."""


class _Effect:
    """The gradients in the first steps of each optimizer."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._called: weakref.WeakSet[Module] = weakref.WeakSet()
        self._empty: weakref.WeakKeyDictionary[Optimizer, tuple[int, int]] = weakref.WeakKeyDictionary()
        """The number of steps without a gradient so far, and of backward passes before the last of them."""
        self._idle: weakref.WeakKeyDictionary[Optimizer, set[int]] = weakref.WeakKeyDictionary()
        """The parameters that had no gradient in any step so far, by `id`."""
        self._judged: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def made(self, optimizer: Optimizer) -> None:
        self._made.add(optimizer)
        self._begin()

    def _begin(self) -> None:
        self._watch.listen_to(self, "after_step", "calling")

    def calling(self, module: Module) -> None:
        self._called.add(module)

    def before_inspected_step(self, _: object, number: int) -> None:
        if number == 1:  # also of one that was made before this watch
            self._begin()

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        if optimizer in self._judged:
            if all(other in self._judged for other in [*self._made, *steps]):
                self._watch.ignore_from(self, "after_step", "calling")
            return
        trained = {
            id(parameter): parameter.grad is not None
            for parameter in parameters_of(optimizer)
            if parameter.requires_grad
        }
        idle = self._idle.setdefault(optimizer, set(trained))
        idle.difference_update(key for key, has_gradient in trained.items() if has_gradient)
        if len(idle) == len(trained):
            self._count_empty(optimizer, number)
        elif number >= _STEPS:
            self._judged.add(optimizer)
            if idle:
                self._check_for_replaced(optimizer, idle)

    def _count_empty(self, optimizer: Optimizer, number: int) -> None:
        count, before = self._empty.get(optimizer, (0, 0))
        backwards = self._watch.count("after_backward")
        count += backwards > before
        self._empty[optimizer] = (count, backwards)
        if count == _STEPS:
            name = type(optimizer).__name__
            text = f"none of the parameters that this {name} holds ever had a gradient, in {number} steps"
            self._watch.report("steps_without_gradients", text, once=(id(optimizer),), step=number)

    def _check_for_replaced(self, optimizer: Optimizer, idle: set[int]) -> None:
        owned = {
            id(parameter): (module, parameter) for module in list(self._called) for parameter in module.parameters()
        }
        lost = idle - owned.keys()
        held = {id(parameter) for other in list(self._made) for parameter in parameters_of(other)}
        new = [module for key, (module, parameter) in owned.items() if key not in held and parameter.grad is not None]
        if not lost or len(lost) != len(new):
            return  # a layer has as many as the one that it replaces
        first = next(
            parameter for group in optimizer.param_groups for parameter in group["params"] if id(parameter) in lost
        )
        del owned
        if _has_owner(first, optimizer):
            return
        kinds = sorted({type(module).__name__ for module in new if module._parameters})
        text = (
            f"{len(lost)} of the parameters that this {type(optimizer).__name__} holds were replaced after it was"
            f" made: {len(new)} trained ones are in no optimizer"
        )
        self._watch.report("parameters_replaced", text, step=_STEPS, names=kinds[:5])


def listen(watch: Watch) -> None:
    """Attach the checks."""
    effect = _Effect(watch)
    watch.listen_to(effect, "made", "calling", "before_inspected_step", "after_step")


def _has_owner(parameter: Parameter, optimizer: Optimizer) -> bool:
    """Return whether a module, an attribute, a list or another dict by name holds a parameter."""
    own = {id(group["params"]) for group in optimizer.param_groups}
    for referrer in gc.get_referrers(parameter):
        if isinstance(referrer, dict) and any(
            value is parameter and isinstance(key, str) for key, value in [*referrer.items()]
        ):
            return True
        if isinstance(referrer, (list, tuple)) and id(referrer) not in own:
            return True
    return False
