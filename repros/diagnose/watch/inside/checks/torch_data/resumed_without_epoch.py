"""A sampler that resumes in the middle of a pass has the epoch of that pass.

## What it does
`resumed_without_epoch`: reports a shuffling DistributedSampler that was loaded with a position in a pass and without
an epoch, and draws the order of the pass before any `set_epoch`. Either all states with this position that the process
has taken before were of other epochs, or the program then sets an epoch for the next pass that does not follow the one
that was drawn.

## Why is this bad?
The rest of the pass is that of another order: some samples come twice in the epoch, and others not at all.

## Example
torchdata's `StatefulDistributedSampler`, whose state has the position and no epoch, without
`sampler.set_epoch(epoch)` before the resumed pass.

## Known misses
Positions whose name has none of `_NAMES`, and those that count the samples of all passes. Programs that set no epoch at
all, which `epoch_not_set` reports, and those that end with the resumed pass. Samplers with `shuffle=False`, and those
with the epoch in their state.

## Cost
A number for each state that is taken.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.utils.data import DistributedSampler

CHECKS = (
    Check(
        "resumed_without_epoch",
        "a sampler resumes a pass in the order of another epoch",
        "`sampler.set_epoch(epoch)` with the epoch of the checkpoint, before the loader is iterated",
    ),
)


_NAMES = ("position", "index", "yielded", "consumed", "start", "offset")
"""A position's name in a sampler's state has one of these."""


class _Positions:
    """The samplers that were loaded with a position."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._taken: dict[tuple[str, int, int], set[int]] = {}
        """The epochs in which states were taken, by class, number of samples and position."""
        self._set: weakref.WeakSet[DistributedSampler] = weakref.WeakSet()
        """Samplers whose epoch the program has set."""
        self._loaded: weakref.WeakKeyDictionary[DistributedSampler, int] = weakref.WeakKeyDictionary()
        """The position of each sampler that has not drawn an order since."""
        self._resumed: weakref.WeakKeyDictionary[DistributedSampler, tuple[int, int, str | None]] = (
            weakref.WeakKeyDictionary()
        )
        """The position, epoch and location of the pass that each sampler has resumed without an epoch."""

    def position_taken(self, sampler: DistributedSampler, state: object) -> None:
        self._taken.setdefault((*_kind(sampler), _position(sampler, state)), set()).add(sampler.epoch)

    def position_loaded(self, sampler: DistributedSampler, state: object) -> None:
        position = _position(sampler, state)
        if position > 0 and sampler not in self._set and sampler.shuffle:
            self._loaded[sampler] = position

    def epoch_set(self, sampler: DistributedSampler) -> None:
        self._set.add(sampler)
        self._loaded.pop(sampler, None)
        position, epoch, place = self._resumed.pop(sampler, (0, sampler.epoch, None))
        if sampler.epoch > epoch + 1:
            self._report(sampler, position, epoch, f"the next pass is that of epoch {sampler.epoch}", place)

    def order_made(self, sampler: DistributedSampler) -> None:
        self._resumed.pop(sampler, None)
        position = self._loaded.pop(sampler, 0)
        if not position:
            return
        place = user_location()
        epochs = self._taken.get((*_kind(sampler), position), {sampler.epoch})
        if sampler.epoch in epochs:
            self._resumed[sampler] = position, sampler.epoch, place
        else:
            known = ", ".join(map(str, sorted(epochs)))
            self._report(sampler, position, sampler.epoch, f"the state was taken in epoch {known}", place)

    def _report(self, sampler: DistributedSampler, position: int, epoch: int, reason: str, place: str | None) -> None:
        text = (
            f"{type(sampler).__name__} resumes after {position} samples in the order of epoch {epoch}, which its state"
            f" does not hold and nobody has set: {reason}"
        )
        self._watch.report("resumed_without_epoch", text, numbers={"position": position, "epoch": epoch}, place=place)


def listen(watch: Watch) -> None:
    """Attach the check."""
    watch.listen_to(_Positions(watch), "position_taken", "position_loaded", "epoch_set", "order_made")


def _kind(sampler: DistributedSampler) -> tuple[str, int]:
    return type(sampler).__name__, sampler.num_samples


def _position(sampler: DistributedSampler, state: object) -> int:
    """Return the position in a sampler's state; 0 for one that also has an epoch, or has no position in a pass."""
    fields = {str(name).lower(): value for name, value in state.items()} if isinstance(state, Mapping) else {}
    if any("epoch" in name for name in fields):
        return 0
    numbers = [value for name, value in fields.items() if type(value) is int and any(part in name for part in _NAMES)]
    return max((value for value in numbers if value <= sampler.num_samples), default=0)
