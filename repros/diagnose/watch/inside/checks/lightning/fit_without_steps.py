"""A fit trains, and an epoch is as long as its loader (Lightning).

## What it does
`fit_without_steps`: reports a `Trainer.fit` that begins with `should_stop` set and ends without a step, although epochs
were left. `epoch_cut_short`: reports an epoch that ends after fewer batches than `num_training_batches` although
nothing asked the Trainer to stop.

## Why is this bad?
The second fit trains nothing, or a part of the data is never read.

## Example
Two calls of `trainer.fit` with one Trainer, of which early stopping has ended the first.

## Known misses
Fits that resume a finished training, the first epoch of a fit that resumes a checkpoint (before Lightning 2.5 one that
was made within an epoch counts a batch too few), loaders of unknown length, `max_steps`, `max_time`, and callbacks that
stop the training.

## Cost
Nothing in a step.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from lightning.pytorch.loops.fit_loop import _FitLoop

CHECKS = (
    Check("fit_without_steps", "a fit ends without a step because an earlier one was stopped"),
    Check("epoch_cut_short", "an epoch ends before its loader does"),
)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    stopped: weakref.WeakKeyDictionary[Trainer, tuple[int, int]] = weakref.WeakKeyDictionary()
    in_first_epoch: weakref.WeakSet[Trainer] = weakref.WeakSet()

    def fit_begins(trainer: Trainer) -> None:
        in_first_epoch.add(trainer)
        stopped.pop(trainer, None)
        if trainer.should_stop:
            stopped[trainer] = (trainer.global_step, trainer.current_epoch)

    def fit_ended(trainer: Trainer) -> None:
        before = stopped.pop(trainer, None)
        epochs = trainer.max_epochs
        if before is None or trainer.global_step != before[0] or epochs is None:
            return
        if epochs == -1 or before[1] < epochs:
            text = "fit ended without a step: trainer.should_stop was still True from an earlier fit"
            watch.report("fit_without_steps", text, step=before[0], numbers={"epochs": epochs - before[1]})

    def epoch_ended(trainer: Trainer, loop: _FitLoop) -> None:
        expected, progress = trainer.num_training_batches, loop.epoch_loop.batch_progress.current
        done = progress.ready
        is_resumed = trainer in in_first_epoch and trainer.ckpt_path is not None
        in_first_epoch.discard(trainer)
        if is_resumed:
            return
        if not isinstance(expected, int) or trainer.should_stop or done >= expected or done != progress.completed:
            return
        if trainer.max_steps != -1 and trainer.global_step >= trainer.max_steps:
            return
        text = f"epoch {trainer.current_epoch} ends after {done} of the {expected} batches of its loader"
        watch.report("epoch_cut_short", text, step=trainer.global_step, numbers={"batches": done, "expected": expected})

    watch.listen("fit_begins", fit_begins)
    watch.listen("fit_ended", fit_ended)
    watch.listen("epoch_ended", epoch_ended)
