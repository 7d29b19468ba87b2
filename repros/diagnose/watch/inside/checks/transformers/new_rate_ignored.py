"""A training of transformers' Trainer that resumes from a checkpoint goes on as its arguments say.

## What it does
`new_rate_ignored`: reports, at the first step after a resume, a schedule whose base rates are those of the checkpoint
and not those of the present arguments. `patience_counted_anew`: reports an EarlyStoppingCallback that is asked for the
first time after a resume and has counted nothing, if the checkpoint's log has evaluations without an improvement, fewer
than its patience.

## Why is this bad?
The new learning rate has no effect, or the training goes on longer than its patience allows.

## Example
`TrainingArguments(learning_rate=1e-5)` with `trainer.train(resume_from_checkpoint=True)` of a training with 5e-5.

## Known misses
Equal rates. Callbacks that set `base_lrs` or the counter, or whose state is restored. Another number of steps, or
another curve of the same rate, as of a training that is prolonged. Trainings that early stopping had ended: they are
resumed on purpose.

## Cost
Nothing in a step, except for the first after a resume.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from transformers import EarlyStoppingCallback, Trainer, TrainerState, TrainingArguments

CHECKS = (
    Check("new_rate_ignored", "a resumed training has the learning rate of its checkpoint, not that of its arguments"),
    Check("patience_counted_anew", "early stopping counts from 0 after a resume"),
)


class _Rates:
    """The base rates of the schedules of trainers that resume."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._before: list[float] = []
        self._resumed: weakref.ref[Trainer] | None = None

    def resuming(self, trainer: Trainer) -> None:
        self._before = _base_rates(trainer)

    def resumed(self, trainer: Trainer) -> None:
        after = _base_rates(trainer)
        if len(after) == len(self._before) and not _are_close(self._before, after):
            self._resumed = weakref.ref(trainer)
            self._watch.listen("before_step", self.before_step)

    def before_step(self, _: object, number: int) -> None:
        self._watch.ignore("before_step", self.before_step)
        trainer = self._resumed() if self._resumed is not None else None
        present = _base_rates(trainer) if trainer is not None else []
        if len(present) != len(self._before) or _are_close(self._before, present):
            return
        wanted, got = next(pair for pair in zip(self._before, present) if not _are_close(pair[:1], pair[1:]))
        text = (
            f"the arguments of this resumed training have learning_rate {wanted:g},"
            f" and its schedule goes on from the checkpoint's, {got:g}"
        )
        self._watch.report("new_rate_ignored", text, step=number, numbers={"asked": wanted, "used": got})


class _Patience:
    """Callbacks that stop early, in trainings that resume."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._logs: weakref.WeakKeyDictionary[EarlyStoppingCallback, list[dict[str, Any]]] = weakref.WeakKeyDictionary()
        """The log of each callback's checkpoint."""

    def stopping_begins(self, callback: EarlyStoppingCallback, state: TrainerState) -> None:
        self._logs.pop(callback, None)
        if getattr(state, "global_step", 0) > 0:
            self._logs[callback] = list(getattr(state, "log_history", ()))

    def stopping_asked(self, callback: EarlyStoppingCallback, arguments: TrainingArguments) -> None:
        log = self._logs.pop(callback, None)
        if log is None or callback.early_stopping_patience_counter != 0:
            return
        name = getattr(arguments, "metric_for_best_model", None) or ""
        name = name if name.startswith("eval_") else f"eval_{name}"
        scores = [float(row[name]) for row in log if isinstance(row.get(name), (int, float))]
        is_better_greater = bool(getattr(arguments, "greater_is_better", False))
        counted = _count(scores, float(callback.early_stopping_threshold or 0.0), is_better_greater=is_better_greater)
        patience = callback.early_stopping_patience
        if 0 < counted < patience:
            text = (
                f"early stopping had counted {counted} evaluations without an improvement, of {patience},"
                " when the checkpoint was saved, and begins anew after the resume"
            )
            numbers = {"counted": counted, "patience": patience}
            self._watch.report("patience_counted_anew", text, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    rates, patience = _Rates(watch), _Patience(watch)
    watch.listen_to(rates, "resuming", "resumed")
    watch.listen_to(patience, "stopping_begins", "stopping_asked")


def _base_rates(trainer: Trainer) -> list[float]:
    scheduler = getattr(trainer, "lr_scheduler", None)
    scheduler = getattr(scheduler, "scheduler", scheduler)  # accelerate's wrapper
    return [float(rate) for rate in getattr(scheduler, "base_lrs", ())]


def _are_close(some: Sequence[float], others: Sequence[float]) -> bool:
    return all(math.isclose(one, other, rel_tol=1e-6) for one, other in zip(some, others))


def _count(scores: list[float], threshold: float, *, is_better_greater: bool) -> int:
    """Return the evaluations at the end of a log that have not improved on the best before them."""
    best, counted = None, 0
    for score in scores:
        is_better = best is None or (score > best if is_better_greater else score < best)
        counted = 0 if best is None or (is_better and abs(score - best) > threshold) else counted + 1
        best = score if is_better else best
    return counted
