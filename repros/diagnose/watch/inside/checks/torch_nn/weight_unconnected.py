"""Gradients reach the parameters, and stay until a step has used them.

## What it does
`weight_unconnected`: reports a plain `nn.Linear` or convolution that is called with gradients enabled, in an inspected
step, if no path of its output's graph leads to its trained weight. `gradients_erased`: reports gradients of parameters
that an optimizer holds, which came after the last optimizer step and are zeroed while gradients are disabled (inside an
evaluation).

## Why is this bad?
The weight is not trained, or a part of the gradients of an accumulation is lost.

## Example
A validation within an accumulation calls `model.zero_grad()` under `torch.no_grad()`.

## Known misses
`weight_unconnected` reports nothing for subclasses, for layers whose weight is computed (weight norm,
parametrizations), inside functional calls and under `torch.compile`. `gradients_erased` reports nothing for gradients
that a training loop zeroes itself, such as those of a GAN's other half, and for optimizers whose steps are compiled.

## Cost
A walk over at most 40 nodes of the graph for each such layer in an inspected step. For `zero_grad`, one pass over the
gradients if it is called with gradients disabled.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("weight_unconnected", "a layer's output does not depend on its trained weight"),
    Check("gradients_erased", "an evaluation zeroes gradients that no step has used"),
)

_MOST_NODES = 40
_PLAIN = {"Linear", "Conv1d", "Conv2d", "Conv3d"}


class _Erased:
    """The backward passes whose gradients no step has used yet."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._before = 0
        """The number of backward passes until the last step."""

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def after_step(self, *_: object) -> None:
        self._before = self._watch.count("after_backward")

    def zeroing(self, list_parameters: Callable[[], list[Parameter]]) -> None:
        since = self._watch.count("after_backward") - self._before
        torch = sys.modules["torch"]
        if since == 0 or torch.is_grad_enabled():
            return
        # The steps of a compiled optimizer are not observed.
        stepping = [optimizer for optimizer in self._optimizers if not self._watch.compiles or steps.get(optimizer, 0)]
        held = {id(parameter) for optimizer in stepping for parameter in parameters_of(optimizer)}
        lost = [parameter for parameter in list_parameters() if parameter.grad is not None and id(parameter) in held]
        norms = [float(parameter.grad.norm()) for parameter in lost if parameter.grad.layout is torch.strided]
        if any(0 < norm < float("inf") for norm in norms):
            text = f"an evaluation erases the gradients of {since} backward passes before a step used them"
            numbers = {"backwards": since, "parameters": len(lost)}
            self._watch.report("gradients_erased", text, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    erased = _Erased(watch)
    watch.listen_to(erased, "made", "after_step", "zeroing")

    def called(module: Module, output: object) -> None:
        weight = _trained_weight(module)
        if weight is None or not _is_tensor(output) or _leads_to(output, weight):
            return
        name = type(module).__name__
        text = f"the output of this {name} does not depend on its weight: the weight gets no gradient from it"
        watch.report("weight_unconnected", text, once=(id(module),), numbers={"shape": list(weight.shape)})

    watch.listen("called", called)


def _is_tensor(output: object) -> bool:
    return type(output) is sys.modules["torch"].Tensor


def _trained_weight(module: Module) -> Parameter | None:
    """Return the trained weight of a plain layer that is called with gradients enabled, or None."""
    if type(module).__name__ not in _PLAIN:  # the cheapest condition first: it is checked for each module
        return None
    torch = sys.modules["torch"]  # for each module: an `import` would take too long
    nn = torch.nn
    if getattr(nn, type(module).__name__) is not type(module) or not torch.is_grad_enabled():
        return None
    weight = module._parameters.get("weight")
    # A hook may exchange the output for another; inside a functional call the weight is no Parameter.
    is_plain = type(weight) is nn.Parameter and weight.requires_grad and weight.is_leaf and not module._forward_hooks
    return weight if is_plain and "forward" not in module.__dict__ and weight.layout is torch.strided else None


def _leads_to(output: Tensor, weight: Parameter) -> bool:
    """Return whether the graph of an output leads to a weight, or has too many nodes to search."""
    node = output.grad_fn
    waiting, visited = [] if node is None else [node], 0
    while waiting:
        node = waiting.pop(0)
        visited += 1
        followings = [following for following, _ in node.next_functions if following is not None]
        # The names first: a failing attribute access takes longer.
        if visited > _MOST_NODES or any(
            type(following).__name__ == "AccumulateGrad" and following.variable is weight for following in followings
        ):
            return True
        waiting += followings
    return False
