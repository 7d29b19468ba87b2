"""A network that is trained is in train mode.

## What it does
Reports, at an inspected step, a module with submodules, all in eval mode in their last forward with gradients enabled,
that has an active dropout (p > 0) or a batch norm with running statistics, and weights other than those of
normalisation layers that have a gradient and are held by the optimizer. No module called in train mode may have such
weights, and either Lightning drives the training or the module was trained in train mode at an earlier step.

## Why is this bad?
Dropout regularises nothing, and batch norms keep their old statistics.

## Example
`model.eval()` before a validation, and no `model.train()` after it.

## Known misses
Networks of which a part is in eval mode, such as a frozen backbone or frozen statistics. Programs with their own loop
that never train in train mode, which may be meant. Frozen weights. Forwards that compute gradients of the input alone.
Calls of compiled modules are not observed: their mode at the end of the step counts as that of their forward.

## Cost
One read of `module.training` for each call in an inspected step.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module
    from torch.optim import Optimizer

CHECKS = (Check("eval_mode", "a network is trained in eval mode"),)


class _Modes:
    """The modes that modules were last called in."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._evaluating: dict[int, weakref.ref[Module]] = {}
        self._training: dict[int, weakref.ref[Module]] = {}
        """Modules that were called in train mode since the last step, by `id`, as the evaluating ones."""
        self._trained: weakref.WeakSet[Module] = weakref.WeakSet()
        """Modules that were in train mode at an earlier step."""
        self._compiled: weakref.WeakSet[Module] = weakref.WeakSet()
        self._is_fit = False

    def fit_begins(self, _: object) -> None:
        self._is_fit = True

    def fit_ended(self, _: object) -> None:
        self._is_fit = False

    def compiled(self, module: Module) -> None:
        self._compiled.add(module)
        self._watch.listen("after_step", self.after_step)

    def calling(self, module: Module) -> None:
        if module.training or sys.modules["torch"].is_grad_enabled():
            if not self._training and not self._evaluating:
                self._watch.listen("after_step", self.after_step)
            self._note(module)

    def _note(self, module: Module) -> None:
        if module.training:
            self._evaluating.pop(id(module), None)
            self._training[id(module)] = weakref.ref(module)
        else:
            self._evaluating[id(module)] = weakref.ref(module)

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        is_due = self._watch.is_due(number)
        for module in list(self._compiled) if is_due else ():
            for inner in module.modules():
                self._note(inner)
        if not is_due and not self._training:
            if not self._evaluating and not self._compiled:
                self._watch.ignore("after_step", self.after_step)
            return
        called = [module for module in (reference() for reference in self._training.values()) if module is not None]
        self._training.clear()
        if is_due and self._evaluating:
            self._inspect(optimizer, number, called)
        self._trained.update(module for module in called if module not in self._trained)

    def _inspect(self, optimizer: Optimizer, number: int, called: list[Module]) -> None:
        held = {id(parameter) for parameter in parameters_of(optimizer) if parameter.grad is not None}
        if any(id(parameter) in held for module in called for parameter in module.parameters(recurse=False)):
            return
        for module in [reference() for reference in self._evaluating.values()]:
            if module is None or not (self._is_fit or module in self._trained):
                continue
            layers = _inactive_layers(module)
            if layers and _learns(module, held):
                names = ", ".join(sorted({type(layer).__name__ for layer in layers}))
                what = f"its layers ({names}) do not work as in training"
                text = f"{type(module).__name__} is trained in eval mode: {what}"
                self._watch.report("eval_mode", text, step=number, numbers={"layers": len(layers)})
                self._evaluating.clear()
                return


def listen(watch: Watch) -> None:
    """Attach the check."""
    modes = _Modes(watch)
    watch.listen_to(modes, "fit_begins", "fit_ended", "compiled", "calling")


def _norms() -> tuple[type, ...]:
    from torch import nn

    return (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


def _inactive_layers(module: Module) -> list[Module]:
    """Return the dropouts and batch norms of a module that is wholly in eval mode."""
    from torch import nn

    inner = list(module.modules())
    if len(inner) == 1 or any(module.training for module in inner):
        return []
    dropouts = [module for module in inner if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0]
    norms = [
        module for module in inner if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats
    ]
    return dropouts + norms


def _learns(module: Module, held: set[int]) -> bool:
    return any(
        id(parameter) in held
        for child in module.modules()
        if not isinstance(child, _norms())
        for parameter in child.parameters(recurse=False)
    )
