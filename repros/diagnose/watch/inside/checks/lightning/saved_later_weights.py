"""A checkpoint holds the weights at the time of saving, and those that its score belongs to.

## What it does
`saved_later_weights`: reports that `torch.save` in a thread writes a dict that was submitted to a ThreadPoolExecutor,
and in which a parameter of an optimizer has been changed in place in between. `scored_before_validation`: reports that
Lightning's ModelCheckpoint saves one of the best after more optimizer steps than its monitored metric, which only
validation logs, has seen.

## Why is this bad?
The file mixes the weights of several steps, or the best checkpoint is not the one that was scored.

## Example
`ModelCheckpoint(monitor="val_loss", every_n_train_steps=100)` with a validation every 1000 steps.

## Known misses
Dicts that were copied first. Metrics logged in training.

## Cost
A walk over a submitted dict, and one over a saved one in a thread.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint
    from torch import Tensor
    from torch.optim import Optimizer

CHECKS = (
    Check("saved_later_weights", "a thread saves parameters that have changed since they were submitted"),
    Check("scored_before_validation", "ModelCheckpoint ranks weights by the metric of an earlier validation"),
)

_MOST_TENSORS = 10_000


class _Saving:
    """The dicts that were submitted to threads."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._submitted: dict[int, dict[str, tuple[Tensor, int]]] = {}

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def submitted(self, arguments: list[object]) -> None:
        for argument in arguments:
            if isinstance(argument, dict):
                held = {p.data_ptr() for optimizer in self._optimizers for p in parameters_of(optimizer)}
                live = {name: (t, t._version) for name, t in _tensors(argument) if t.data_ptr() in held}
                if live:
                    self._submitted[id(argument)] = live

    def saving(self, saved: object) -> None:
        versions = self._submitted.pop(id(saved), None)
        if versions is None or threading.current_thread() is threading.main_thread():
            return
        changed = [name for name, (tensor, version) in versions.items() if tensor._version != version]
        if changed:
            text = f"a thread saves weights that were trained on since they were submitted: {len(changed)} tensors"
            self._watch.report("saved_later_weights", text, names=changed[:10], numbers={"tensors": len(changed)})


class _Scores:
    """The step of each Trainer's last validation."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._validated: weakref.WeakKeyDictionary[Trainer, int] = weakref.WeakKeyDictionary()

    def validated(self, trainer: Trainer) -> None:
        if not trainer.sanity_checking:
            self._validated[trainer] = trainer.global_step

    def scored(self, callback: ModelCheckpoint, trainer: Trainer) -> None:
        monitor, steps = callback.monitor, getattr(callback, "_every_n_train_steps", 0)
        step = self._validated.get(trainer, trainer.global_step)
        if not monitor or not steps or monitor not in _validation_metrics(trainer) or step == trainer.global_step:
            return
        text = f"step {trainer.global_step} is ranked by {monitor} of the validation after step {step}"
        self._watch.report("scored_before_validation", text, step=trainer.global_step, numbers={"validated": step})


def listen(watch: Watch) -> None:
    """Attach the checks."""
    saving, scores = _Saving(watch), _Scores(watch)
    watch.listen_to(saving, "made", "submitted", "saving")
    watch.listen_to(scores, "validated", "scored")


def _validation_metrics(trainer: Trainer) -> set[str]:
    """Return the metrics that a validation of this trainer has logged."""
    results = getattr(trainer.fit_loop.epoch_loop.val_loop, "_results", None) or {}
    return {getattr(result.meta, "name", "") for result in results.values()}


def _tensors(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict) and depth < 5:  # noqa: PLR2004 - a checkpoint's nesting
        for key, inner in list(value.items())[:_MOST_TENSORS]:
            yield from _tensors(inner, f"{name}.{key}" if name else str(key), depth + 1)
