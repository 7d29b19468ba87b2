"""The order of the data changes from epoch to epoch.

## What it does
`epoch_not_set`: reports that one optimizer has trained on two passes of a loader that drew with the same epoch of a
shuffling sampler with `set_epoch`, also of a sampler inside a wrapper. `epoch_set_too_late`: reports that
`DistributedSampler.set_epoch` gets another epoch after a pass has drawn its first index and before anything was trained
on it, if the pass is then trained on.

## Why is this bad?
Each epoch has the same order, and with it the same batches.

## Example
A loop over a loader with a DistributedSampler, without `sampler.set_epoch(epoch)`.

## Known misses
Samplers with `shuffle=False`. Passes without a backward (validation). Loaders used with new optimizers.

## Cost
One look at the samplers when a pass begins.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.loaders import LoaderPass
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.utils.data import DistributedSampler, Sampler

CHECKS = (
    Check("epoch_not_set", "two epochs have the same order"),
    Check("epoch_set_too_late", "the epoch is set after the order of the pass was drawn"),
)


class _Order:
    """The passes over loaders with samplers that have an epoch."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._passes: list[LoaderPass] = []
        """The last pass of each sampler."""
        self._untouched: set[int] = set()
        """Passes on which nothing was trained yet, by `id`."""
        self._late: dict[int, tuple[int, int]] = {}
        self._trained: weakref.WeakKeyDictionary[Sampler, dict[int, _Trained]] = weakref.WeakKeyDictionary()

    def drawn(self, new: LoaderPass) -> None:
        for old in [old for old in self._passes if any(sampler in new.samplers for sampler in old.samplers)]:
            self._passes.remove(old)
            self._untouched.discard(id(old))
            self._late.pop(id(old), None)
        self._passes.append(new)
        self._untouched.add(id(new))
        self._watch.listen("after_step", self.after_step)

    def epoch_set(self, sampler: DistributedSampler) -> None:
        for current in self._passes:
            for place, other in enumerate(current.samplers):
                if other is not sampler or id(current) not in self._untouched or not getattr(sampler, "shuffle", False):
                    continue
                self._late.pop(id(current), None)
                if current.epochs[place] != sampler.epoch:
                    self._late[id(current)] = (current.epochs[place], sampler.epoch)

    def after_step(self, optimizer: Optimizer, _: int) -> None:
        if not self._untouched:
            self._watch.ignore("after_step", self.after_step)
        for current in self._passes:
            if current.fetched == 0 or id(current) not in self._untouched:
                continue
            self._untouched.discard(id(current))
            if id(current) in self._late:
                drawn, wanted = self._late.pop(id(current))
                text = f"epoch {wanted} has the order of epoch {drawn}: it was drawn before set_epoch({wanted})"
                self._watch.report("epoch_set_too_late", text, numbers={"drawn": drawn, "set": wanted})
            for place, sampler in enumerate(current.samplers):
                if getattr(sampler, "shuffle", True):
                    self._count(sampler, current.epochs[place], optimizer)

    def _count(self, sampler: DistributedSampler, epoch: int, optimizer: Optimizer) -> None:
        by_optimizer = self._trained.setdefault(sampler, {})
        last = by_optimizer.get(id(optimizer))
        if last is not None and last.optimizer() is optimizer and last.epoch == epoch:
            name = type(sampler).__name__
            text = f"two epochs have the same order: {name}.set_epoch was not called between them (epoch {epoch})"
            self._watch.report("epoch_not_set", text, numbers={"epoch": epoch}, names=[name])
        by_optimizer[id(optimizer)] = _Trained(weakref.ref(optimizer), epoch)


class _Trained(NamedTuple):
    """The last pass of a sampler on which an optimizer was trained."""

    optimizer: weakref.ref[Optimizer]
    epoch: int


def listen(watch: Watch) -> None:
    """Attach the checks."""
    checks = _Order(watch)
    watch.listen_to(checks, "drawn", "epoch_set")
