"""Gradients that ranks share are changed alike before a step uses them.

## What it does
Reports a gradient that two ranks had alike after the backward (its norm and sum agree to a millionth, and it is not
zero) and that differs by more than a thousandth at the step, at step 1, 2, 4, 8, ... of an optimizer.

## Why is this bad?
The replicated parameters of the ranks drift apart from this step on.

## Example
A tensor or expert parallel program clips by the norm over what its rank holds, so that each rank scales its copy of the
shared gradients by another factor.

## Known misses
Parameters of a DistributedDataParallel, for which `gradients_differ` reports. Gradients that differ after the backward
already: they may be shards, or be reduced by hand later. DTensors. Programs on one rank.

## Cost
In a program with several ranks, at the inspected steps: one pass over the gradients after the backward, and one at the
step over those that are small or were written to since. Nothing at other steps.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.optimizers import coming, parameters_of, steps
from repros.diagnose.watch.inside.values import Digested, digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "gradients_changed_apart",
        "gradients that agreed between ranks after the backward differ at the step",
        "make the change from values that all ranks share, such as a clip by a norm that was reduced over them",
    ),
)


class _Changes:
    """The gradients of each optimizer after its last backward."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        """The optimizers, numbered in the order of their construction, which is the same on all ranks."""
        self._before: weakref.WeakKeyDictionary[Optimizer, tuple[dict[str, list[Any]], Digested]] = (
            weakref.WeakKeyDictionary()
        )

    def made(self, optimizer: Optimizer) -> None:
        self._made.setdefault(optimizer, len(self._made))

    def after_inspected_backward(self) -> None:
        following = coming(self._watch)
        for optimizer in list(self._made) if _world() > 1 else ():
            if self._watch.is_due(steps.get(optimizer, 0) + following):
                gradients, known = _gradients(optimizer), self._watch.known()
                before = digest(gradients, known)
                self._before[optimizer] = before, Digested([gradients[name] for name in before["names"]], known)
                self._watch.listen("after_step", self.after_step)

    # Afterwards, as in `gradients`: within a closure's step the backward comes after its beginning.
    def after_step(self, optimizer: Optimizer, number: int) -> None:
        before, digested = self._before.pop(optimizer, ({}, None))
        if not self._before:
            self._watch.ignore("after_step", self.after_step)
        if digested is None or not self._watch.is_due(number) or not self._watch.is_enabled("gradients_changed_apart"):
            return
        known = self._watch.known()
        known.update(digested.still_known())
        after = digest(_gradients(optimizer), known)
        if after["names"] and after["names"] == before["names"]:
            key = [replicas.run_name(), list(range(_world())), self._made.get(optimizer, 0)]
            details = {**after, "before": [before["norms"], before["sums"]]}
            self._watch.events.write(
                "changed", check="gradients_changed_apart", what="changed", key=key, number=number, **details
            )


def listen(watch: Watch) -> None:
    """Attach the check."""
    changes = _Changes(watch)
    watch.listen_to(changes, "made", "after_inspected_backward")


def _gradients(optimizer: Optimizer) -> dict[str, Tensor]:
    import torch

    wrapped = {id(parameter) for replica in replicas.replicas for parameter in replica.parameters().values()}
    return {
        f"parameter {place} {tuple(parameter.shape)}": parameter.grad
        for place, parameter in enumerate(parameters_of(optimizer))
        # A subclass, such as a DTensor, may hold a part.
        if id(parameter) not in wrapped and type(parameter.grad) is torch.Tensor
    }


def _world() -> int:
    dist = sys.modules["torch.distributed"]  # an `import` would cost more than everything else after a backward
    is_initialized = getattr(dist, "is_initialized", None)  # torch may be built without it
    return dist.get_world_size() if is_initialized is not None and is_initialized() else 1
