"""Gradients are zeroed once a step has used them, and unscaled before they are clipped.

## What it does
`gradients_not_zeroed`: reports, at an optimizer's fourth step, that a backward has added to the gradients of each
earlier step, which nothing had changed since. `clipped_while_scaled`: reports a step through an enabled GradScaler
without `unscale_`, if its optimizer's gradients were clipped before to a norm or value below the scale.

## Why is this bad?
Each step uses the sum of all gradients so far; or each step is clipped to nearly nothing.

## Example
A loop without `optimizer.zero_grad()`; `clip_grad_norm_` between `scaler.scale(loss).backward()` and
`scaler.step(optimizer)` without `scaler.unscale_(optimizer)`.

## Known misses
Gradients after the first step at which they were zeroed, replaced or changed before the next backward. A limit of the
norm that includes the scale. `clip_grad_norm_(model.parameters(), ...)` in a program with several optimizers: a
generator does not show whose parameters these are.

## Cost
One look at a small gradient in the first four steps of each optimizer; a set of names for each clipping.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.amp import GradScaler
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("gradients_not_zeroed", "each step adds to the gradients that the previous one has used"),
    Check("clipped_while_scaled", "gradients are clipped while GradScaler's scale is still in them"),
)

_STEPS = 3
"""Steps in a row that add to used gradients; a single one could be on purpose."""


class _Probe:
    """The gradient of one parameter since its last step."""

    def __init__(self, parameter: Parameter, gradient: Tensor, count: int) -> None:
        self.parameter = parameter
        self.gradient: Tensor = weakref.ref(gradient)
        self.version = gradient._version
        self.count = count
        self.is_kept = True
        self.is_added_to = False

    def before_backward(self) -> None:
        """Notice whether it was zeroed; through `.data` its `_version` stays the same."""
        gradient = self.parameter.grad
        self.is_kept = self.is_kept and self._is_same(gradient) and (self.is_added_to or bool(gradient.any()))

    def after_backward(self) -> None:
        """Notice whether the backward has added to it."""
        gradient = self.parameter.grad
        if gradient is None or gradient is not self.gradient():
            self.is_kept = False
        elif gradient._version != self.version:
            self.version, self.is_added_to = gradient._version, True

    def _is_same(self, gradient: Tensor | None) -> bool:
        return gradient is not None and gradient is self.gradient() and gradient._version == self.version


class _Used:
    """The probe of each optimizer that has begun to train."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._probes: weakref.WeakKeyDictionary[Optimizer, _Probe] = weakref.WeakKeyDictionary()

    def before_backward(self) -> None:
        for probe in list(self._probes.values()):
            probe.before_backward()

    def after_backward(self) -> None:
        for probe in list(self._probes.values()):
            probe.after_backward()

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        # After the step, since Lightning runs zero_grad and backward in a closure within it.
        probe = self._probes.pop(optimizer, None) if self._probes else None
        if probe is None and number != 1:
            return
        self._go_on(optimizer, probe, number)
        change = self._watch.listen if self._probes else self._watch.ignore
        for name in ("before_backward", "after_backward"):
            change(name, getattr(self, name))

    def _go_on(self, optimizer: Optimizer, probe: _Probe | None, number: int) -> None:
        if probe is not None and not (probe.is_kept and probe.is_added_to):
            return
        count = 0 if probe is None else probe.count + 1
        if count == _STEPS:
            text = f"gradients are never zeroed: each step of this {type(optimizer).__name__} adds to those before"
            self._watch.report("gradients_not_zeroed", text, step=number)
            return
        parameter = probe.parameter if probe is not None else _smallest(optimizer)
        if parameter is not None and parameter.grad is not None:
            self._probes[optimizer] = _Probe(parameter, parameter.grad, count)


class _Clipped:
    """The gradients that were clipped since the last step."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._clipped: list[tuple[set[int] | None, float]] = []

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def clipping(self, parameters: Tensor | Iterable[Tensor], most: float) -> None:
        # A generator must not be consumed: its parameters are unknown.
        names = {id(parameter) for parameter in parameters} if isinstance(parameters, (list, tuple)) else None
        self._clipped = [*self._clipped[-3:], (names, float(most))]
        self._watch.listen("after_step", self.after_step)

    def scaler_steps(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        clipped, self._clipped = self._clipped, []
        inner = getattr(optimizer, "optimizer", optimizer)
        if not clipped or not scaler.is_enabled() or _is_unscaled(scaler, inner):
            return
        held = {id(parameter) for parameter in parameters_of(inner) if parameter.grad is not None}
        for names, most in clipped:
            is_its = len(self._optimizers) == 1 if names is None else bool(names & held)
            scale = float(scaler.get_scale())
            if is_its and scale > max(1.0, most):
                text = f"gradients are clipped to {most:g} while they are scaled by {scale:g}: unscale_ was not called"
                self._watch.report("clipped_while_scaled", text, numbers={"clipped": most, "scale": scale})
                return

    def after_step(self, *_: object) -> None:
        self._clipped.clear()
        self._watch.ignore("after_step", self.after_step)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    used, clipped = _Used(watch), _Clipped(watch)
    watch.listen("after_inspected_step", used.after_inspected_step)
    watch.listen_to(clipped, "made", "clipping", "scaler_steps")


def _smallest(optimizer: Optimizer) -> Parameter | None:
    """Return the smallest parameter with a plain gradient that is not zero, or None."""
    import torch

    candidates = [
        parameter
        for parameter in parameters_of(optimizer)
        if type(parameter.grad) is torch.Tensor and parameter.grad.layout is torch.strided and parameter.grad.numel()
    ]
    for parameter in sorted(candidates, key=torch.Tensor.numel)[:3]:
        if bool(parameter.grad.any()):
            return parameter
    return None


def _is_unscaled(scaler: GradScaler, optimizer: Optimizer) -> bool:
    state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer))
    return state is not None and getattr(state.get("stage"), "name", "") != "READY"
