"""A network is evaluated in eval mode.

Speaks: `evaluated_in_train_mode`: possible, and no more: when a module that is trained in train mode, with an active
dropout or a batch norm, was called by itself with gradients off and in train mode after three of the steps 4, 8, 16 ...
of an optimizer that holds its parameters, before anything else was trained.
Silent: where any module was ever put into eval mode; where such calls come between steps 1 and 2 or 2 and 3 as well, as
those of a generator for its critic or of a teacher; for several calls with one input, as those of Monte Carlo dropout;
for batch norms without momentum, whose statistics are computed anew; once two optimizers have stepped, as in a GAN,
whose generator draws samples in train mode; about forwards inside another (checkpoints);
about evaluations that come after other steps, which are not looked at, and compiled programs.
Costs: a look at the calls that follow a step that was looked at, until the next one with gradients.
"""

from __future__ import annotations

import weakref
from typing import Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Listener, Watch

CHECKS = (Check("evaluated_in_train_mode", "a network is evaluated in train mode, as it seems"),)

_EARLY = 2
"""Steps after which nothing is evaluated yet; what is called there is called in each step."""
_TIMES = 3


class _Evaluations:
    """The calls with gradients off since a step."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._outermost = 0
        """The module that is being called by itself, by `id`; 0 for none."""
        self._optimizer: Any = _nothing
        """A reference to the one that has just stepped."""
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._number = 0
        self._called: set[int] = set()
        """Modules that were called by themselves with gradients off since the last step, by `id`."""
        self._inputs: list[int] = []
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()
        self._times: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
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
        """Listen no longer."""
        self._is_over = True
        for name, listener in self._listeners.items():
            self._watch.ignore(name, listener)

    def fed(self, module: Any, inputs: Any) -> None:
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

    def called(self, module: Any, *_: Any) -> None:
        if id(module) == self._outermost:
            self._outermost = 0

    def _judge(self, module: Any) -> None:
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

    def after_step(self, optimizer: Any, number: int) -> None:
        self._number = number
        if self._outermost or self._called:
            self._forget()
        if self._optimizer() is not optimizer:
            self._optimizers.add(optimizer)
            if len(self._optimizers) > 1:
                self.end()
            self._optimizer = weakref.ref(optimizer)

    def _count(self, module: Any) -> None:
        if self._number <= _EARLY:
            self.end()
            return
        layers = _active_layers(module)
        self._times[module] = self._times.get(module, 0) + bool(layers)
        if self._times[module] == _TIMES:
            text = (
                f"possible: {type(module).__name__} is evaluated in train mode, with gradients off: its"
                f" {' and '.join(layers)} work as in training, and eval() is never called"
            )
            self._watch.find("evaluated_in_train_mode", text, step=self._number)


def listen(watch: Watch) -> None:
    """Attach the check."""
    _Evaluations(watch).listen()


def _nothing() -> None:
    """Stand for the reference to no optimizer."""


def _active_layers(module: Any) -> list[str]:
    """Return the kinds of dropouts and batch norms that work as in training; none if statistics are being computed."""
    from torch import nn

    found = set()
    for inner in module.modules():
        if isinstance(inner, nn.modules.batchnorm._BatchNorm) and inner.training and inner.track_running_stats:
            if inner.momentum is None:
                return []
            found.add(type(inner).__name__)
        if isinstance(inner, nn.modules.dropout._DropoutNd) and inner.training and inner.p > 0:
            found.add(type(inner).__name__)
    return sorted(found)
