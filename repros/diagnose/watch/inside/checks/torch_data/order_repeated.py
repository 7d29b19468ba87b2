"""A training draws new random numbers all the time.

## What it does
`order_repeated`: reports that one optimizer has trained on two passes over the same data set whose sampler draws at
random (RandomSampler, SubsetRandomSampler, WeightedRandomSampler) and whose first 8 indices are equal.
`draws_repeated`: reports that torch is seeded with the same number for the third time between steps of the same
optimizer, with at least two steps in between, if its generator is in the same state each time at the step that follows.
`draws_repeated_by_workers`: reports two workers of a loader that is trained on that begin with the same state of
Python's, NumPy's or torch's generator and leave their first read with the same state, which is another. The process
outside compares.

## Why is this bad?
Epochs, dropout masks or augmentations repeat, so that the training sees less variation than it seems to.

## Example
`worker_init_fn=lambda _: numpy.random.seed(0)`.

## Known misses
Data sets of fewer than 8 samples. Weights or an optimizer's state that were loaded in between, as after a search for a
rate or between folds. Passes that nothing is trained on, such as a validation in a fixed order. Seeds that change from
epoch to epoch, that are set once or before each single step, inside a step's closure or under `fork_rng`. What only the
generator of a GPU draws.

## Cost
The first 8 indices of each pass; a copy of the generator's state (5 kB) for each seed, and for the first read of each
worker.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.loaders import LoaderPass
from repros.diagnose.watch.inside.values import stable_digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.utils.data._utils.worker import WorkerInfo

CHECKS = (
    Check(
        "order_repeated",
        "a loader draws the same random order for two epochs",
        "seed once, before the first epoch; a generator given to the loader is seeded once as well",
    ),
    Check(
        "draws_repeated",
        "a seed is set again and again in a training, which repeats its random numbers",
        "seed once, before the training",
    ),
    Check("draws_repeated_by_workers", "the workers of a loader draw the same random numbers"),
)

_TIMES = 3
"""A search for a rate, or a warm-up, may be followed by the training with the same seed."""
_PASSES = 3
"""The most passes with workers that a process writes events about."""


class _TrainedOrder(NamedTuple):
    """The order of a pass that an optimizer was trained on, and when that was."""

    indices: tuple[int, ...]
    at: int


class _Orders:
    """The passes that the process was trained on."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._clock = 0
        self._fetched: Callable[[], LoaderPass | None] = _nothing
        """The pass of the last batch if gradients were enabled; a reference, since a pass holds its data set."""
        self._training: Callable[[], LoaderPass | None] = _nothing
        """The pass of the last batch before a backward."""
        self._drawn: weakref.WeakKeyDictionary[LoaderPass, int] = weakref.WeakKeyDictionary()
        """The time, by `_clock`, at which the first indices of each pass were drawn."""
        self._orders: weakref.WeakKeyDictionary[Optimizer, dict[int, _TrainedOrder]] = weakref.WeakKeyDictionary()
        self._reported: weakref.WeakSet[LoaderPass] = weakref.WeakSet()
        self._passes = 0

    def ordered(self, new: LoaderPass) -> None:
        self._clock += 1
        self._drawn[new] = self._clock

    def fetched(self, current: LoaderPass) -> None:
        self._fetched = weakref.ref(current) if sys.modules["torch"].is_grad_enabled() else _nothing

    def before_backward(self) -> None:
        if self._fetched is not _nothing:
            self._training, self._fetched = self._fetched, _nothing

    def forget(self, *_: object) -> None:
        self._orders.clear()

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        current, self._training = self._training(), _nothing
        if current is None:
            return
        if current.workers > 1 and self._passes < _PASSES and current not in self._reported:
            self._passes += 1
            self._reported.add(current)
            self._watch.events.write("trained_on", passed=_name(os.getpid(), current.seed))
        if current not in self._drawn:
            return
        self._clock += 1
        drawn = self._drawn.pop(current)
        before = self._orders.setdefault(optimizer, {}).get(current.dataset)
        # Two loaders that are read side by side may have the same order on purpose.
        if before is not None and before.at < drawn and before.indices == tuple(current.indices):
            text = "two epochs have the same random order: the sampler's generator was seeded anew with the same number"
            numbers = {"first indices": list(before.indices)}
            self._watch.report("order_repeated", text, step=number, numbers=numbers)
        self._orders[optimizer][current.dataset] = _TrainedOrder(tuple(current.indices), self._clock)


class _Seeds:
    """How often the generator was in the same state after a seed, by optimizer."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._seed: int | None = None
        self._seeded_at = -2
        """The number of steps when a seed was set last."""
        self._is_spaced = True
        self._times: weakref.WeakKeyDictionary[Optimizer, dict[tuple[int, str], int]] = weakref.WeakKeyDictionary()

    def seeded(self, seed: int) -> None:
        if self._watch.is_later("before_step", "after_step"):
            return  # in a step
        steps = self._watch.count("before_step")
        if steps > self._seeded_at:
            self._is_spaced = steps - self._seeded_at > 1  # not before each step
        self._seeded_at = steps
        self._seed = seed if self._is_spaced else None
        self._watch.listen("before_step", self.before_step)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        self._watch.ignore("before_step", self.before_step)
        seed, self._seed = self._seed, None
        if seed is None:
            return
        import torch

        state = torch.get_rng_state()
        if torch.equal(state, torch.Generator().manual_seed(int(seed)).get_state()):
            return  # nothing was drawn
        times = self._times.setdefault(optimizer, {})
        key = (seed, stable_digest(state.tolist()))
        times[key] = times.get(key, 0) + 1
        if times[key] == _TIMES:
            text = f"torch is seeded with {seed} again and again in this training: it draws the same numbers each time"
            self._watch.report("draws_repeated", text, step=number, numbers={"seed": int(seed), "times": _TIMES})

    def forget(self, *_: object) -> None:
        self._times.clear()


def _listen_in_workers(watch: Watch) -> None:
    begun: dict[str, str] = {}

    def worker_begins() -> None:
        begun.clear()
        begun.update(_generators())

    def worker_began() -> None:
        info = _worker()
        if info is None or not watch.is_enabled("draws_repeated_by_workers"):
            return
        passed = _name(os.getppid(), info.seed - info.id)
        for generator, state in _generators().items():
            if state == begun.get(generator, state):
                continue
            text = "the workers of a loader draw the same random numbers: worker_init_fn gives them one seed"
            what = f"state of {generator}'s generator"
            details: dict[str, object] = {"what": what, "value": [begun[generator], state], "text": text}
            key = ["workers", list(range(info.num_workers)), passed, generator]
            details.update(key=key, worker=info.id, passed=passed, number=0, wanted="different")
            watch.events.write("fact", check="draws_repeated_by_workers", **details)

    watch.listen("worker_begins", worker_begins)
    watch.listen("worker_began", worker_began)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    orders, seeds = _Orders(watch), _Seeds(watch)
    watch.listen_to(orders, "ordered", "fetched", "before_backward", "after_step")
    watch.listen("seeded", seeds.seeded)
    for name in ("loading", "state_loading"):
        watch.listen(name, orders.forget)
        watch.listen(name, seeds.forget)
    _listen_in_workers(watch)


def _nothing() -> None:
    """Return None, as the reference to no pass."""


def _name(pid: int, seed: int | None) -> str:
    """Return the name of a pass, which is the same in its process and in its workers."""
    return f"{pid}-{seed}"


def _worker() -> WorkerInfo | None:
    """Return torch's information on this process if it is a loader's worker, or None."""
    module = sys.modules.get("torch.utils.data._utils.worker")
    return None if module is None else module.get_worker_info()


def _generators() -> dict[str, str]:
    """Return a digest of the state of each library's random generator, the same in every process."""
    import random

    import torch

    states = {"torch": stable_digest(torch.get_rng_state().tolist()), "Python": stable_digest(random.getstate()[1])}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        _, keys, place, *_ = numpy.get_state()
        states["NumPy"] = stable_digest(keys.tolist(), place)
    return states
