"""A network is evaluated in eval mode.

## What it does
Reports `evaluated_in_train_mode` (possible) for a module that is trained in train mode, has an active dropout or batch
norm, and was called on its own with gradients disabled, in train mode, after three of the steps 4, 8, 16, ... of an
optimizer that holds its parameters, before anything else was trained.

## Why is this bad?
Dropout adds noise to the metrics, and batch norms learn statistics from the validation data.

## Example
`with torch.no_grad(): validate(model)` without `model.eval()`.

## Known misses
Programs that ever put a module into eval mode. Calls that also come between steps 1 and 2 or 2 and 3, as those of a
generator for its critic or of a teacher. Several calls with one input, as in Monte Carlo dropout. Batch norms without
momentum, whose statistics are computed anew. Programs in which two optimizers have stepped, as a GAN, whose generator
draws samples in train mode. Forwards inside another forward (checkpoints). Evaluations after steps that are not
inspected. Compiled programs.

## Cost
One look at each call that follows an inspected step, until the next call with gradients.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Listener, Watch

if TYPE_CHECKING:
    from torch.nn import Module
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "evaluated_in_train_mode",
        "a network seems to be evaluated in train mode",
        "`model.eval()` before the evaluation, and `model.train()` after it",
    ),
)

_EARLY = 2
"""Steps after which no program evaluates yet: a call there is one of each step."""
_TIMES = 3


class _Evaluations:
    """The calls with gradients disabled since a step."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._outermost = 0
        """The module in an outermost call, by `id`; 0 for none."""
        self._optimizer: Callable[[], Optimizer | None] = _nothing
        """A reference to the optimizer that has stepped last."""
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._number = 0
        self._called: set[int] = set()
        """Modules of outermost calls with gradients disabled since the last step, by `id`."""
        self._inputs: list[int] = []
        self._trained: weakref.WeakSet[Module] = weakref.WeakSet()
        self._times: weakref.WeakKeyDictionary[Module, int] = weakref.WeakKeyDictionary()
        self._is_over = False
        self._listeners: dict[str, Listener] = {
            "evaluating": self.end,
            "fed": self.fed,
            "called": self.called,
            "fed_between": self.fed,
            "called_between": self.called,
            "after_step": self.after_step,
        }

    def listen(self) -> None:
        for name, listener in self._listeners.items():
            self._watch.listen(name, listener)

    def end(self) -> None:
        """Remove all listeners."""
        self._is_over = True
        for name, listener in self._listeners.items():
            self._watch.ignore(name, listener)

    def fed(self, module: Module, inputs: tuple[object, ...]) -> None:
        if self._outermost:
            return
        self._outermost = id(module)
        if self._is_over:
            return
        import torch

        if torch.is_grad_enabled():
            self._trained.add(module)
            return
        given = [id(value) for value in inputs if isinstance(value, torch.Tensor)]
        if not module.training or any(value in self._inputs for value in given):
            self.end()
        self._inputs += given
        if id(module) not in self._called:
            self._called.add(id(module))
            self._judge(module)

    def called(self, module: Module, *_: object) -> None:
        if id(module) == self._outermost:
            self._outermost = 0

    def _judge(self, module: Module) -> None:
        is_between = self._watch.is_later("after_step", "before_backward")
        optimizer = self._optimizer() if is_between else None
        if self._is_over or optimizer is None or module not in self._trained:
            return
        held = {id(parameter) for parameter in parameters_of(optimizer)}
        if any(id(parameter) in held for parameter in module.parameters()):
            self._count(module)

    def _forget(self) -> None:
        self._outermost = 0
        self._called.clear()
        self._inputs.clear()

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        self._number = number
        if self._outermost or self._called:
            self._forget()
        if self._optimizer() is not optimizer:
            self._optimizers.add(optimizer)
            if len(self._optimizers) > 1:
                self.end()
            self._optimizer = weakref.ref(optimizer)

    def _count(self, module: Module) -> None:
        if self._number <= _EARLY:
            self.end()
            return
        layers = _active_layers(module)
        self._times[module] = self._times.get(module, 0) + bool(layers)
        if self._times[module] == _TIMES:
            text = (
                f"possible: {type(module).__name__} is evaluated in train mode, with gradients disabled: its"
                f" {' and '.join(layers)} work as in training, and eval() is never called"
            )
            self._watch.report("evaluated_in_train_mode", text, step=self._number)


def listen(watch: Watch) -> None:
    """Attach the check."""
    _Evaluations(watch).listen()


def _nothing() -> None:
    """Return None, as the reference to no optimizer."""


def _active_layers(module: Module) -> list[str]:
    """Return the kinds of dropouts and batch norms that work as in training; none if statistics are being computed."""
    from torch import nn

    kinds = set()
    for inner in module.modules():
        if isinstance(inner, nn.modules.batchnorm._BatchNorm) and inner.training and inner.track_running_stats:
            if inner.momentum is None:
                return []
            kinds.add(type(inner).__name__)
        if isinstance(inner, nn.modules.dropout._DropoutNd) and inner.training and inner.p > 0:
            kinds.add(type(inner).__name__)
    return sorted(kinds)
