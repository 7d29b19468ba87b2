"""A schedule-free optimizer is in eval mode when weights are saved.

## What it does
`saved_in_train_mode`: reports, at the next step or the program's end, that `torch.save` or safetensors has written the
weights of an optimizer that has a mode of its own (`train()`, `eval()` and a `train_mode`, as those of schedulefree)
while it is in train mode, after at least two steps.

## Why is this bad?
In train mode the parameters are the point at which gradients are taken, and not the average that the method returns.
The saved model is worse than the one that was trained.

## Example
`torch.save(model.state_dict(), path)` without `optimizer.eval()` before it.

## Known misses
Checkpoints by torch.distributed.checkpoint. Weights that were converted to another dtype before.
Checkpoints with the state of the optimizer, in the same file or taken before the next step: a training may resume from
them in the same mode.

## Cost
One look at the methods of each optimizer; a comparison of 64 values for each save, if one has such a mode.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps
from repros.diagnose.watch.inside.values import is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "saved_in_train_mode",
        "the weights of a schedule-free optimizer are saved in its train mode",
        "`optimizer.eval()` before the save, and `optimizer.train()` after it",
    ),
)

_FEWEST = 2
"""The step from which the average and the point of the gradients differ."""
_VALUES = 64
_DEPTH = 5


class _Saves:
    """The optimizers with a mode, and the weights that were saved in their train mode."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._stored: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        """The number of steps of each when its state was last taken."""
        self._suspects: list[tuple[weakref.ref[Optimizer], str, int, str | None]] = []
        """The optimizer of each save, its class, the number of its steps, and the location."""

    def made(self, optimizer: Optimizer) -> None:
        if all(callable(getattr(optimizer, name, None)) for name in ("train", "eval")):
            self._optimizers.add(optimizer)
            self._watch.listen_to(self, "saving", "tensors_saved", "optimizer_state", "ends")

    def optimizer_state(self, optimizer: Optimizer, _: object) -> None:
        if optimizer in self._optimizers:
            self._stored[optimizer] = steps.get(optimizer, 0)

    def saving(self, saved: object) -> None:
        for optimizer in list(self._optimizers):
            number = steps.get(optimizer, 0)
            if number < _FEWEST or not _is_training(optimizer) or self._stored.get(optimizer) == number:
                continue
            if _holds_weights(saved, optimizer) and not _holds_state(saved):
                suspect = weakref.ref(optimizer), type(optimizer).__name__, number, user_location()
                self._suspects.append(suspect)
                self._watch.listen("before_step", self.before_step)

    def tensors_saved(self, tensors: object) -> None:
        self.saving(tensors)

    def before_step(self, *_: object) -> None:
        self.ends()
        self._watch.ignore("before_step", self.before_step)

    def ends(self) -> None:
        for reference, name, number, place in self._suspects:
            optimizer = reference()
            if optimizer is not None and self._stored.get(optimizer) == number:
                continue  # a checkpoint of both
            text = (
                f"the weights that are saved are those at which {name} takes its gradients, and not its average: the"
                " optimizer is in train mode"
            )
            self._watch.report("saved_in_train_mode", text, step=number, names=[name], place=place)
        self._suspects.clear()


def listen(watch: Watch) -> None:
    """Attach the check."""
    watch.listen("made", _Saves(watch).made)


def _is_training(optimizer: Optimizer) -> bool:
    """Return whether an optimizer is in train mode; schedulefree has it in its groups, others in an attribute."""
    modes = [group["train_mode"] for group in optimizer.param_groups if "train_mode" in group]
    return bool(all(modes) if modes else getattr(optimizer, "train_mode", False))


def _holds_weights(saved: object, optimizer: Optimizer) -> bool:
    """Return whether what is saved has the largest weight of an optimizer, or a copy of it."""
    import torch

    weights = [weight for weight in parameters_of(optimizer) if is_plain(weight)]
    weight = max(weights, key=torch.Tensor.numel, default=None)
    return weight is not None and any(_is_same(tensor, weight) for tensor in _tensors(saved))


def _is_same(tensor: Tensor, weight: Tensor) -> bool:
    if tensor.shape != weight.shape or tensor.dtype != weight.dtype or not is_plain(tensor):
        return False
    one, other = (value.detach().reshape(-1)[:_VALUES].cpu() for value in (tensor, weight))
    return bool((one == other).all())


def _tensors(saved: object, depth: int = 0) -> Iterator[Tensor]:
    """Yield the tensors in what is saved: a state, a module, or a dict of them."""
    import torch

    if isinstance(saved, torch.Tensor):
        yield saved
    elif isinstance(saved, torch.nn.Module):
        yield from saved.parameters()
    elif isinstance(saved, Mapping) and depth < _DEPTH:
        for value in list(saved.values()):
            yield from _tensors(value, depth + 1)


def _holds_state(saved: object, depth: int = 0) -> bool:
    """Return whether what is saved has the state of an optimizer."""
    if isinstance(saved, Mapping):
        has_state = {"state", "param_groups"} <= set(saved)
        return has_state or (depth < _DEPTH and any(_holds_state(value, depth + 1) for value in list(saved.values())))
    return isinstance(saved, (list, tuple)) and any(_holds_state(value, depth + 1) for value in saved[:_DEPTH])
