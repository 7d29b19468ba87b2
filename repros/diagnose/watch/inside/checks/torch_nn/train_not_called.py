"""Switching a network between its modes has the effect that its parts rely on.

## What it does
`train_not_called`: reports, at an optimizer's first step, a module whose class has a `train` of its own that freezes
parameters, if `train` was never called and the step trains parameters that it would freeze; a copy without weights, on
which it is called, shows which. `dropout_in_evaluation`: reports a module that is put in eval mode after a step and
whose `forward` calls `nn.functional.dropout` without `training`, whose default is True, or
`scaled_dot_product_attention` with a `dropout_p` above 0, which knows no mode. `spectral_norm_not_estimated`: reports a
layer with `nn.utils.spectral_norm` that is called in eval mode before a call in train mode has estimated its norm.

## Why is this bad?
Parts are trained that the class means to freeze; an evaluation is random; or a weight is divided by a random number.

## Example
`functional.dropout(x, 0.1)` in a `forward`.

## Known misses
`train_not_called`: a `train` that freezes nothing that is trained. `dropout_in_evaluation`: a `forward` that mentions
`training`, also in a call `dropout(x, training=True)`, which is Monte Carlo dropout on purpose; a rate that is 0 or
computed; kernels of other packages. `spectral_norm_not_estimated`: Lightning's sanity check, weights of fewer than 16
rows, and `nn.utils.parametrizations.spectral_norm`, which estimates as it is applied.

## Cost
One look at each module whose mode is switched; a parse of `forward`, once for each class whose code names dropout; one
product of a matrix and a vector for each such layer that is called in eval mode.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside import sources
from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "train_not_called",
        "`train`, which freezes parts of the network, was never called",
        "`model.train()` before the first step",
    ),
    Check(
        "dropout_in_evaluation",
        "a module's dropout works in eval mode as well",
        "give the call the mode: `F.dropout(x, p, self.training)`, or `dropout_p=p if self.training else 0.0`",
    ),
    Check(
        "spectral_norm_not_estimated", "an evaluation divides a weight by a spectral norm that was not estimated yet"
    ),
)

_FEWEST_ROWS = 16
"""The cosine of two random vectors of this length is rarely near 1."""
_LEAST_COSINE = 0.5


class _Switches:
    """The modules whose mode was switched, and the effect of their classes' `train`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._switched: weakref.WeakSet[Module] = weakref.WeakSet()
        """Modules with a `train` of their own that was called with True."""
        self._freezing: weakref.WeakSet[Module] = weakref.WeakSet()
        """Those whose forward was called without it."""
        self._estimated: weakref.WeakSet[Module] = weakref.WeakSet()
        self._trainers: list[weakref.ref[Trainer]] = []

    def fit_begins(self, trainer: Trainer) -> None:
        self._trainers = [weakref.ref(trainer)]

    def switching(self, module: Module, mode: bool) -> None:
        if mode:
            if sources.has_freezing_train(module.__class__):
                self._switched.add(module)
        elif self._watch.count("after_step"):
            call = sources.unconditional_dropout(module.__class__)
            if call is not None and call.rate(module):
                name = type(module).__name__
                text = f"{name} is put in eval mode, and its forward drops all the same: {call.text}"
                self._watch.report("dropout_in_evaluation", text, once=(name,), names=[name], place=call.place)

    def calling(self, module: Module) -> None:
        if sources.has_freezing_train(module.__class__) and module not in self._switched:
            self._freezing.add(module)
        if not module.training and module._forward_pre_hooks and module not in self._estimated:
            self._inspect_norm(module)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if number > 1 or not self._freezing:
            return
        waiting = [module for module in list(self._freezing) if module not in self._switched]
        held = {id(parameter) for parameter in parameters_of(optimizer) if parameter.grad is not None}
        for module in waiting:
            trained = {name for name, value in module.named_parameters() if value.requires_grad and id(value) in held}
            frozen = sorted(_freezes(module) & trained) if trained else []
            if frozen:
                name = type(module).__name__
                text = (
                    f"{name}.train() was never called, which freezes {len(frozen)} of the {len(trained)} parameters"
                    " that are trained"
                )
                self._watch.report("train_not_called", text, once=(name,), step=number, names=frozen[:5])

    def _inspect_norm(self, module: Module) -> None:
        import torch
        from torch.nn.utils.spectral_norm import SpectralNorm

        for hook in module._forward_pre_hooks.values():
            if not isinstance(hook, SpectralNorm):
                continue
            self._estimated.add(module)
            trainers = (reference() for reference in self._trainers)
            if any(trainer is not None and trainer.sanity_checking for trainer in trainers):
                self._estimated.discard(module)
                return
            with torch.no_grad():
                # `weight` has the shape (rows, columns), `v` (columns,), `u` and `product` (rows,).
                weight = hook.reshape_weight_to_matrix(getattr(module, f"{hook.name}_orig"))
                product = torch.mv(weight, getattr(module, f"{hook.name}_v"))
                norm, sigma = product.norm().item(), torch.dot(getattr(module, f"{hook.name}_u"), product).item()
            if len(product) >= _FEWEST_ROWS and abs(sigma) < _LEAST_COSINE * norm:
                text = (
                    f"a {type(module).__name__} with spectral_norm is called in eval mode before a call in train mode"
                    " has estimated its norm: this output is no measure of the network"
                )
                numbers = {"divided by": sigma, "after one iteration": norm}
                self._watch.report("spectral_norm_not_estimated", text, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    switches = _Switches(watch)
    watch.listen_to(switches, "fit_begins", "switching", "calling", "after_inspected_step")


def _freezes(module: Module) -> set[str]:
    """Return the names of the parameters that `train()` freezes, from a copy of the module without weights."""
    import copy

    import torch

    memo: dict[int, Tensor] = {}
    for parameter in module.parameters():
        empty = torch.empty_like(parameter, device="meta")
        memo[id(parameter)] = torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)
    for buffer in module.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    try:
        other = copy.deepcopy(module, memo)
        before = {name for name, parameter in other.named_parameters() if parameter.requires_grad}
        other.train()
    except Exception:
        return set()  # what cannot be copied, or switched without weights, is not judged
    return before - {name for name, parameter in other.named_parameters() if parameter.requires_grad}
