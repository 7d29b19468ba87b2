"""What a backward gives is clipped before the step that uses it, and used once.

## What it does
`clipped_too_late`: reports gradients that are clipped four times in a row after a step and before the next backward,
with no step that could use them. `gradients_used_twice`: reports two optimizers with the same parameters that step one
after the other, four times after a single backward each. `parameters_listed_twice`: reports an optimizer that is made
with a parameter twice in its groups. `gradients_dropped`: reports, in a program with one optimizer that steps after
each k-th backward, that three times, after equally many steps, fewer than k are zeroed without a step.

## Why is this bad?
Clipping has no effect; updates count twice; or the last batches of each epoch are never trained on.

## Example
`optimizer.step(); clip_grad_norm_(model.parameters(), 1.0)`.

## Known misses
Clipping to an infinite norm, which measures. Optimizers that step inside another one's step, that share a part of their
parameters, or whose gradients are changed in between. Gradients that are dropped now and then, or by a loop of another
shape, such as an attack's. Optimizers whose steps are compiled.

## Cost
A count for each backward and step.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "clipped_too_late",
        "gradients are clipped after the step has used them",
        "clip between the backward and the step",
    ),
    Check(
        "gradients_used_twice",
        "two optimizers step the same parameters after one backward",
        "step one optimizer of these parameters, or make a backward for each step",
    ),
    Check(
        "parameters_listed_twice",
        "an optimizer holds a parameter twice",
        "list each parameter once, such as `dict.fromkeys(parameters)`",
    ),
    Check(
        "gradients_dropped",
        "the last batches of each epoch are never used by a step",
        "step after the last batch of an epoch, too: `if (i + 1) % k == 0 or i + 1 == len(loader)`",
    ),
)

_TIMES = 4
_PASSES = 3


_GOING_ON = ("before_backward", "zeroing", "ends")
"""The observations that end a clipping which no step has used."""


class _Late:
    """The clippings that no step has used."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._place: str | None = None
        self._count = 0

    def clipping(self, _: object, most: float) -> None:
        # A step has used all gradients, and none came since.
        if not self._watch.is_later("after_step", "before_backward"):
            self._count = 0
        elif self._place is None and math.isfinite(float(most)):
            self._place = user_location() or ""
            for name in ("before_step", *_GOING_ON):
                self._watch.listen(name, self.before_step if name == "before_step" else self.goes_on)

    def before_step(self, *_: object) -> None:
        self._place, self._count = None, 0
        self._rest()

    def _rest(self) -> None:
        for name in ("before_step", *_GOING_ON):
            self._watch.ignore(name, self.before_step if name == "before_step" else self.goes_on)

    def goes_on(self, *_: object) -> None:
        place, self._place = self._place, None
        self._rest()
        self._count += 1
        if self._count == _TIMES:
            text = "gradients are clipped after the step has used them, and before the next backward"
            self._watch.report("clipped_too_late", text, place=place or None)


class _Ended(NamedTuple):
    """A step that has ended since the last backward."""

    optimizer: weakref.ref[Optimizer]
    """A weak reference to it."""
    order: int
    gradient: weakref.ref[Tensor]
    """A weak reference to the gradient of its first parameter that has one."""
    version: int


class _Twice:
    """The steps since the last backward."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made = 0
        self._order = 0
        self._begun: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._ended: list[_Ended] = []
        self._counts: dict[tuple[int, int], int] = {}

    def made(self, optimizer: Optimizer) -> None:
        self._made += 1
        if self._made == 2:  # noqa: PLR2004 - one alone steps once
            self._watch.listen_to(self, "before_backward", "before_step", "after_step")
        held = parameters_of(optimizer)
        count = len(held) - len({id(parameter) for parameter in held})
        if count:
            text = f"{count} parameters are twice in the groups of this {type(optimizer).__name__}"
            self._watch.report("parameters_listed_twice", text, numbers={"parameters": count})

    def before_backward(self) -> None:
        if self._ended:
            self._ended.clear()

    def before_step(self, optimizer: Optimizer, _: int) -> None:
        self._order += 1
        self._begun[optimizer] = self._order

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        begun = self._begun.pop(optimizer, 0) if self._begun else 0
        if not begun:
            return
        self._order += 1
        for other in self._ended:
            if other.order < begun and other.optimizer() not in (None, optimizer):
                self._compare(optimizer, other, number)
        if len(self._ended) < _TIMES:
            gradients = (parameter.grad for parameter in parameters_of(optimizer) if parameter.grad is not None)
            gradient = next(gradients, None)
            if gradient is not None:
                ended = _Ended(weakref.ref(optimizer), self._order, weakref.ref(gradient), gradient._version)
                self._ended.append(ended)

    def _compare(self, optimizer: Optimizer, other: _Ended, number: int) -> None:
        gradient, first = other.gradient(), other.optimizer()
        if gradient is None or gradient._version != other.version:
            return
        its, mine = ({id(parameter) for parameter in parameters_of(one)} for one in (first, optimizer))
        pair = (id(first), id(optimizer))
        if its != mine or not any(parameter.grad is gradient for parameter in parameters_of(optimizer)):
            return
        self._counts[pair] = self._counts.get(pair, 0) + 1
        if self._counts[pair] == _TIMES:
            names = [type(first).__name__, type(optimizer).__name__]
            text = f"two optimizers ({', '.join(names)}) step the same parameters after each backward"
            self._watch.report("gradients_used_twice", text, step=number, names=names)


class _Dropped:
    """The numbers of backward passes since the last step, before each step, and before gradients were dropped."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._backwards = 0
        self._used: list[int] = []
        """The number of backward passes of each step since gradients were dropped."""
        self._passes: list[tuple[int, int, int]] = []
        """Of the last passes over data: the steps, the backward passes of each step, and those that were dropped."""

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def after_backward(self) -> None:
        self._backwards += 1

    def after_step(self, *_: object) -> None:
        self._used = [*self._used[-999:], self._backwards] if self._backwards > 1 else []
        self._backwards = 0

    def zeroing(self, list_parameters: Callable[[], list[Parameter]]) -> None:
        import torch

        dropped = self._backwards
        if not dropped or len(self._optimizers) != 1 or not torch.is_grad_enabled():
            return
        held = {id(parameter) for parameter in parameters_of(next(iter(self._optimizers)))}
        if not any(parameter.grad is not None and id(parameter) in held for parameter in list_parameters()):
            return
        used, self._used, self._backwards = self._used, [], 0
        if not used or dropped >= used[0] or len({*used}) > 1:
            self._passes.clear()
            return
        self._passes = [*self._passes[1 - _PASSES :], (len(used), used[0], dropped)]
        if len(self._passes) == _PASSES and len({*self._passes}) == 1:
            text = f"after each {len(used)} steps of {used[0]} batches, {dropped} more are zeroed that no step has used"
            self._watch.report("gradients_dropped", text, numbers={"backwards": dropped, "of": used[0]})


def listen(watch: Watch) -> None:
    """Attach the checks."""
    late, twice, dropped = _Late(watch), _Twice(watch), _Dropped(watch)
    watch.listen("clipping", late.clipping)
    watch.listen("made", twice.made)
    watch.listen_to(dropped, "made", "after_backward", "after_step", "zeroing")
