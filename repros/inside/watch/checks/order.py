"""The order of the data changes from epoch to epoch.

Checks: `epoch_not_set` (two epochs have the order of one) and `epoch_set_too_late` (the epoch is set after the order of
the pass was drawn).

Speaks: when the same optimizer has trained on two passes of a loader that drew with the same epoch of a sampler that
has `set_epoch` and shuffles, also of a sampler inside a wrapper; when `DistributedSampler.set_epoch` gets another epoch
after a pass has drawn its first index and before anything was trained on it, and this pass is then trained on.
Silent: for samplers with `shuffle=False`, passes without a backward (validation), loaders used with new optimizers.
Costs: nothing but a look at the samplers when a pass begins.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..watch import Watch


class _Trained:
    """The epochs of one sampler on which each optimizer was trained."""

    def __init__(self) -> None:
        self.passes: dict[int, tuple[weakref.ref[Any], int, Any]] = {}


def listen(watch: Watch) -> None:
    """Attach the checks."""
    open_passes: list[Any] = []
    late: dict[int, tuple[int, int]] = {}
    trained: weakref.WeakKeyDictionary[Any, _Trained] = weakref.WeakKeyDictionary()
    untouched: set[int] = set()

    def drawn(current: Any) -> None:
        for sampler in current.samplers:
            for other in list(open_passes):
                if sampler in other.samplers:
                    _forget(other)
        open_passes.append(current)
        untouched.add(id(current))

    def _forget(one: Any) -> None:
        open_passes.remove(one)
        untouched.discard(id(one))
        late.pop(id(one), None)

    def epoch_set(sampler: Any) -> None:
        for current in open_passes:
            for place, one in enumerate(current.samplers):
                if one is sampler and id(current) in untouched and getattr(sampler, "shuffle", False):
                    before = current.epochs[place]
                    if before != sampler.epoch:
                        late[id(current)] = (before, sampler.epoch)
                    else:
                        late.pop(id(current), None)

    def after_step(optimizer: Any, _: int) -> None:
        for current in open_passes:
            if current.fetched == 0:
                continue
            untouched.discard(id(current))
            if id(current) in late:
                before, after = late.pop(id(current))
                text = f"epoch {after} has the order of epoch {before}: the order was drawn before set_epoch({after})"
                watch.find("epoch_set_too_late", text, numbers={"drawn": before, "set": after})
            if not getattr(current, "is_counted", False):
                current.is_counted = True
                for place, sampler in enumerate(current.samplers):
                    _count(sampler, current.epochs[place], optimizer, current)

    def _count(sampler: Any, epoch: int, optimizer: Any, current: Any) -> None:
        if not getattr(sampler, "shuffle", True):
            return
        record = trained.setdefault(sampler, _Trained())
        reference, last, earlier = record.passes.get(id(optimizer), (None, -1, None))
        if reference is not None and reference() is optimizer and last == epoch and earlier is not current:
            name = type(sampler).__name__
            text = f"two epochs have the same order: {name}.set_epoch was not called between them (epoch {epoch})"
            watch.find("epoch_not_set", text, numbers={"epoch": epoch}, names=[name])
        record.passes[id(optimizer)] = (weakref.ref(optimizer), epoch, current)

    watch.listen("drawn", drawn)
    watch.listen("epoch_set", epoch_set)
    watch.listen("after_step", after_step)
