"""The learning rate that was announced is the one that is used (Lightning).

## What it does
Reports `rate_not_set` at the first step of an optimizer that belonged to a Lightning Trainer while `_lr_find` found a
rate and set it as the module's attribute, if no parameter group has that rate and nothing schedules it.

## Why is this bad?
The training goes on with the rate that the search was to replace.

## Example
`LearningRateFinder` as a callback, which sets `self.lr` after `configure_optimizers` has made the optimizer.

## Known misses
Optimizers made after the search. Rates that a scheduler (`initial_lr`) sets.

## Cost
Nothing outside of a search.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer
    from torch.optim import Optimizer

CHECKS = (Check("rate_not_set", "the optimizer steps with another rate than the one that the search announced"),)


def listen(watch: Watch) -> None:
    """Attach the check."""
    announced: weakref.WeakKeyDictionary[Optimizer, float] = weakref.WeakKeyDictionary()

    def rate_found(trainer: Trainer, model: LightningModule, options: dict[str, Any]) -> None:
        if not options.get("update_attr"):
            return
        name = options.get("attr_name") or next(
            (attribute for attribute in ("lr", "learning_rate") if hasattr(model, attribute)), None
        )
        rate = getattr(model, name, None) if name else None
        if isinstance(rate, float):
            for optimizer in trainer.optimizers:
                announced[optimizer] = rate
                watch.listen("before_step", before_step)

    def before_step(optimizer: Optimizer, number: int) -> None:
        if not announced:
            watch.ignore("before_step", before_step)
        if optimizer not in announced:
            return
        rate = announced.pop(optimizer)
        groups = optimizer.param_groups
        if any("initial_lr" in group for group in groups) or any(group["lr"] == rate for group in groups):
            return
        used = groups[0]["lr"]
        text = f"the learning rate {rate:g} was announced, the optimizer steps with {float(used):g}"
        watch.report("rate_not_set", text, step=number, numbers={"announced": rate, "used": float(used)})

    watch.listen("rate_found", rate_found)
