"""What accelerate has prepared is loaded, read and scheduled as the program counts.

## What it does
`state_loaded_before_prepare`: reports, at the first backward or the program's end, a `load_state` that had no model,
optimizer or scheduler to load into, if its folder holds a model's weights and the accelerator has prepared a model
since. `batches_skipped_again` (possible): reports a pass that leaves out as many first batches of a loader as an
earlier pass that has come to its end (`skip_first_batches`). `schedule_ahead`: reports, at the program's end, a
prepared scheduler that was stepped exactly as often as its schedule is long, at least 4 times, and has counted one step
for each rank each time.

## Why is this bad?
The resumed training begins with random weights; later epochs lack their first batches; or the learning rate is at its
end too early.

## Example
`accelerator.load_state(folder)` before `accelerator.prepare(model, optimizer)`.

## Known misses
A later `load_state` or `load_state_dict` that has loaded something, a hook that loads the models, or registered objects
of the program's own. States that were loaded between the two passes, and iterable data sets. Schedules of unknown
length, with `split_batches` or `step_scheduler_with_optimizer=False`, that resume from a checkpoint, or of a process
that is killed.

## Cost
One look at the schedule for each step of a prepared scheduler on several ranks, and a list of a checkpoint's files for
a `load_state` that loads nothing.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.accelerators import count_processes
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from accelerate import Accelerator
    from accelerate.data_loader import SkipBatchSampler
    from accelerate.scheduler import AcceleratedScheduler
    from torch.optim.lr_scheduler import LRScheduler
    from torch.utils.data import Sampler

CHECKS = (
    Check("state_loaded_before_prepare", "load_state is called before prepare, and loads no weights"),
    Check("batches_skipped_again", "the first batches that a resume skips are skipped in a later epoch, too"),
    Check("schedule_ahead", "a prepared scheduler counts one step for each rank in each step"),
)

_REGISTERED = ("_models", "_optimizers", "_schedulers", "_custom_objects", "_load_model_state_pre_hook")
"""The attributes with what `load_state` fills, or calls."""
_WEIGHTS = ("model", "pytorch_model")
"""The prefixes of a model's files in a checkpoint."""
_LENGTHS = {"LinearLR": "total_iters", "PolynomialLR": "total_iters", "CosineAnnealingLR": "T_max"}
"""The attribute with the number of steps of a schedule."""
_FEWEST = 4


class _EmptyLoads:
    """The calls of `load_state` that had nothing to load into."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._empty: weakref.WeakKeyDictionary[Accelerator, tuple[str, str | None]] = weakref.WeakKeyDictionary()
        """The folder and the location of the call, by accelerator."""
        self._lost: list[tuple[str, str | None]] = []
        """The same, of accelerators that have prepared a model since."""

    def checkpoint_loaded(self, accelerator: Accelerator, folder: str | os.PathLike[str] | None) -> None:
        self.forget()
        if folder is None or any(getattr(accelerator, name, None) for name in _REGISTERED):
            return
        if any(name.startswith(_WEIGHTS) for name in os.listdir(folder)):
            self._empty[accelerator] = str(folder), user_location()
            self._watch.listen("objects_prepared", self.prepared)

    def forget(self, *_: object) -> None:
        self._empty.clear()
        self._lost.clear()
        self._watch.ignore("objects_prepared", self.prepared)
        self._watch.ignore("before_backward", self.judge)

    def prepared(self, accelerator: Accelerator) -> None:
        if accelerator in self._empty and accelerator._models:
            self._lost.append(self._empty.pop(accelerator))
            self._watch.listen("before_backward", self.judge)

    def judge(self) -> None:
        lost = [*self._lost]
        self.forget()
        for folder, place in lost:
            text = (
                "load_state has loaded no weights: the model was prepared after it, and it fills what is prepared by"
                f" then alone (the checkpoint in {os.path.basename(folder)} has a model)"
            )
            self._watch.report("state_loaded_before_prepare", text, place=place)


class _SkippedBatches:
    """The passes that left out their first batches."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._ended: weakref.WeakKeyDictionary[Sampler, set[int]] = weakref.WeakKeyDictionary()
        """The numbers of batches that complete passes left out, by batch sampler."""

    def skipping(self, sampler: SkipBatchSampler) -> None:
        count = sampler.skip_batches
        if count and count in self._ended.get(sampler.batch_sampler, ()):
            text = (
                f"possible: the first {count} batches of a loader are left out of a second pass: is what"
                " skip_first_batches returns meant for the epoch that a resume goes on with, alone?"
            )
            self._watch.report("batches_skipped_again", text, numbers={"batches": count})

    def skipped(self, sampler: SkipBatchSampler) -> None:
        self._ended.setdefault(sampler.batch_sampler, set()).add(sampler.skip_batches)

    def forget(self, *_: object) -> None:
        self._ended.clear()


class _Counted:
    """A prepared scheduler, as it was stepped."""

    def __init__(self, length: int, ranks: int, epoch: int, place: str | None) -> None:
        self.length, self.ranks, self.begun, self.place = length, ranks, epoch, place
        self.calls = 0
        self.epoch = epoch


class _PreparedSchedules:
    """The prepared schedulers of a program of several ranks."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._counted: list[_Counted] = []
        """All of them: a scheduler itself may be gone before the program ends."""
        self._known: weakref.WeakKeyDictionary[LRScheduler, _Counted | None] = weakref.WeakKeyDictionary()
        """None for one that the check ignores."""

    def schedule_stepped(self, wrapper: AcceleratedScheduler) -> None:
        scheduler = wrapper.scheduler
        if scheduler not in self._known:
            self._known[scheduler] = self._begin(wrapper)
        counted = self._known[scheduler]
        if counted is not None and scheduler.last_epoch != counted.epoch:
            counted.calls, counted.epoch = counted.calls + 1, scheduler.last_epoch

    def _begin(self, wrapper: AcceleratedScheduler) -> _Counted | None:
        length, ranks = _length(wrapper.scheduler), count_processes()
        if ranks == 1 or length is None or wrapper.split_batches or not wrapper.step_with_optimizer:
            return None
        # It was stepped once by now, or not at all where that waits for more micro-batches.
        begun = 0 if wrapper.scheduler.last_epoch in {0, ranks} else -1
        counted = _Counted(length, ranks, begun, user_location())
        self._counted.append(counted)
        return counted

    def ends(self) -> None:
        for counted in self._counted:
            ranks = counted.ranks
            is_whole = counted.begun == 0 and counted.epoch == ranks * counted.calls
            if is_whole and counted.calls == counted.length >= _FEWEST:
                text = (
                    f"a prepared scheduler has counted {counted.epoch} steps in {counted.calls}, one for each rank,"
                    f" and its schedule of {counted.length} was over after {-(-counted.length // ranks)}"
                )
                numbers = {"steps": counted.calls, "schedule": counted.length, "ranks": ranks}
                self._watch.report("schedule_ahead", text, numbers=numbers, place=counted.place)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    loaded, skipped, schedules = _EmptyLoads(watch), _SkippedBatches(watch), _PreparedSchedules(watch)
    watch.listen("checkpoint_loaded", loaded.checkpoint_loaded)
    watch.listen("ends", loaded.judge)
    watch.listen("state_loading", loaded.forget)  # not `loading`: `prepare` itself loads an optimizer's state
    watch.listen_to(skipped, "skipping", "skipped")
    watch.listen("checkpoint_loaded", skipped.forget)
    watch.listen_to(schedules, "schedule_stepped", "ends")


def _length(scheduler: LRScheduler) -> int | None:
    """Return the number of steps of a schedule; None if it is unknown."""
    length = getattr(scheduler, _LENGTHS.get(type(scheduler).__name__, ""), None)
    for function in getattr(scheduler, "lr_lambdas", ()):  # transformers' are partial functions
        length = getattr(function, "keywords", {}).get("num_training_steps", length)
    return length if isinstance(length, int) else None
