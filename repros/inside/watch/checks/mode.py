"""A network that is trained is in train mode.

Check: `eval_mode`.

Speaks: at a step that is looked at, for a module with submodules that are all in eval mode, were in eval mode in their
last forward with gradients on, have an active dropout (p > 0) or batch norm with running statistics, and have other
weights than those of normalisation layers that have a gradient and are held by the optimizer.
Silent: where only normalisation layers are in eval mode (frozen statistics), where the weights are frozen, for a
forward that computes gradients of the input only, under `torch.compile`.
Costs: a look at `module.training` for each call in a step that is looked at.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..observe.optimizers import parameters_of
from ..watch import Watch


def listen(watch: Watch) -> None:
    """Attach the check."""
    evaluating: dict[int, weakref.ref[Any]] = {}

    def calling(module: Any) -> None:
        import torch

        if module.training:
            evaluating.pop(id(module), None)
        elif torch.is_grad_enabled():
            evaluating[id(module)] = weakref.ref(module)

    def after_step(optimizer: Any, number: int) -> None:
        if not evaluating or not watch.is_due(number):
            return
        held = {id(one) for one in parameters_of(optimizer) if one.grad is not None}
        for reference in list(evaluating.values()):
            module = reference()
            layers = _inactive_layers(module) if module is not None else []
            if layers and _learns(module, held):
                names = ", ".join(sorted({type(layer).__name__ for layer in layers}))
                text = f"{type(module).__name__} is trained in eval mode: its {names} do not work as in training"
                watch.find("eval_mode", text, step=number, numbers={"layers": len(layers)})
                evaluating.clear()
                return

    watch.listen("calling", calling)
    watch.listen("after_step", after_step)


def _norms() -> tuple[type, ...]:
    from torch import nn

    return (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


def _inactive_layers(module: Any) -> list[Any]:
    """Return the dropouts and batch norms of a module that is wholly in eval mode."""
    from torch import nn

    inner = list(module.modules())
    if len(inner) == 1 or any(one.training for one in inner):
        return []
    dropouts = [one for one in inner if isinstance(one, nn.modules.dropout._DropoutNd) and one.p > 0]
    norms = [one for one in inner if isinstance(one, nn.modules.batchnorm._BatchNorm) and one.track_running_stats]
    return dropouts + norms


def _learns(module: Any, held: set[int]) -> bool:
    return any(
        id(parameter) in held
        for one in module.modules()
        if not isinstance(one, _norms())
        for parameter in one.parameters(recurse=False)
    )
