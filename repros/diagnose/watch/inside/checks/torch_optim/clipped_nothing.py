"""What is clipped is what the next step uses.

## What it does
Follows the first 16 calls of clip_grad_norm_ and clip_grad_value_, and reports three in a row that changed none of the
gradients of the steps after them. `clipped_nothing`: none of the given parameters has a gradient, or a generator is
used up, for which one call is enough. `clipped_other_parameters`: they have gradients, and none of them is in an
optimizer that steps before the next backward.

## Why is this bad?
The training runs without clipping, although it is configured, and diverges where clipping would have saved it.

## Example
`clip_grad_norm_(averaged.parameters(), 1.0)`, where the optimizer has the parameters of `model`.

## Known misses
Generators other than `Module.parameters()`. Optimizers with copies of the parameters, whose gradients are copied after
the clipping. Clipping of some of the parameters, which may be on purpose.

## Cost
Two sets of names for each of the first clippings.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable
from types import GeneratorType
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "clipped_nothing",
        "clipping gets parameters without gradients",
        "clip the parameters that the optimizer has, by a new `model.parameters()` each time",
    ),
    Check(
        "clipped_other_parameters",
        "clipping gets parameters that no step uses",
        "clip the parameters that the optimizer has",
    ),
)

_TIMES = 3
_MOST = 16
_GOING_ON = ("before_backward", "ends")
"""The observations after which no step uses what was clipped before."""


class _Clipping(NamedTuple):
    """A clipping since the last backward that no optimizer with its parameters has followed."""

    parameters: frozenset[int]
    """By `id`."""
    has_gradients: bool
    place: str | None
    gradients: dict[int, int]
    """The version of the first gradient of each optimizer, by the gradient's `id`."""


class _Clippings:
    """The clippings since the last backward, and how often one changed nothing."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._waiting: list[_Clipping] = []
        self._has_stepped = False
        self._count = 0
        self._times: Counter[tuple[bool, str | None]] = Counter()

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def clipping(self, parameters: object, _: object) -> None:
        given = _known(parameters)
        if given is None or not self._watch.is_later("before_backward", "after_step"):
            return
        self._count += 1
        gradients = [_first_gradient(optimizer) for optimizer in list(self._optimizers)]
        versions = {id(gradient): gradient._version for gradient in gradients if gradient is not None}
        has_gradients = any(parameter.grad is not None for parameter in given)
        self._waiting.append(_Clipping(frozenset(map(id, given)), has_gradients, user_location(), versions))
        self._watch.listen("before_step", self.before_step)
        for name in _GOING_ON:
            self._watch.listen(name, self.goes_on)

    def before_step(self, optimizer: Optimizer, _: int) -> None:
        held, gradient = set(map(id, parameters_of(optimizer))), _first_gradient(optimizer)
        others = []
        for clipping in self._waiting:
            is_untouched = gradient is not None and clipping.gradients.get(id(gradient)) == gradient._version
            if is_untouched and not held & clipping.parameters:
                others.append(clipping)
            else:
                self._times.pop((clipping.has_gradients, clipping.place), None)
        self._waiting, self._has_stepped = others, True

    def goes_on(self) -> None:
        waiting, has_stepped = self._waiting, self._has_stepped
        self._waiting, self._has_stepped = [], False
        self._watch.ignore("before_step", self.before_step)
        for name in _GOING_ON:
            self._watch.ignore(name, self.goes_on)
        for clipping in waiting if has_stepped else ():
            key = (clipping.has_gradients, clipping.place)
            self._times[key] += 1
            if self._times[key] == (_TIMES if clipping.parameters else 1):
                self._report(clipping)
        if self._count >= _MOST:
            self._watch.ignore("clipping", self.clipping)

    def _report(self, clipping: _Clipping) -> None:
        number = len(clipping.parameters)
        if clipping.has_gradients:
            text = (
                f"the {number} parameters that are clipped are in no optimizer that steps: the others are not clipped"
            )
            self._watch.report("clipped_other_parameters", text, place=clipping.place)
        else:
            why = f"none of its {number} parameters has a gradient" if number else "its generator is used up"
            text = f"clipping changes nothing, and the step that follows uses other gradients: {why}"
            self._watch.report("clipped_nothing", text, place=clipping.place)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    clippings = _Clippings(watch)
    watch.listen("made", clippings.made)
    watch.listen("clipping", clippings.clipping)


def _known(parameters: object) -> list[Tensor] | None:
    """Return the parameters that a clipping gets, without using up a generator; None if they are unknown or none."""
    import torch

    if isinstance(parameters, torch.Tensor):
        return [parameters]
    if isinstance(parameters, (list, tuple)):
        return list(parameters) or None
    if isinstance(parameters, GeneratorType) and parameters.gi_code is torch.nn.Module.parameters.__code__:
        frame = parameters.gi_frame
        if frame is None:
            return []  # used up
        module: torch.nn.Module = frame.f_locals["self"]
        found: Iterable[Tensor] = module.parameters(frame.f_locals["recurse"])
        return list(found) or None
    return None


def _first_gradient(optimizer: Optimizer) -> Tensor | None:
    return next((parameter.grad for parameter in parameters_of(optimizer) if parameter.grad is not None), None)
