"""An average of weights is updated before it is used.

## What it does
Reports `average_not_updated` when a `torch.optim.swa_utils.AveragedModel` is called that was neither updated nor
loaded, although an optimizer has taken eight steps since it was made.

## Why is this bad?
The averaged model has its initial weights.

## Example
A training loop without `averaged.update_parameters(model)`.

## Known misses
Averages that were updated once, or whose count of updates came from a checkpoint. Averages of other classes, and those
that the program computes itself.

## Cost
One read of a counter for the first such call.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.optim.swa_utils import AveragedModel

CHECKS = (
    Check(
        "average_not_updated",
        "an average of weights is evaluated without an update",
        "`averaged.update_parameters(model)` after each step",
    ),
)

_STEPS = 8


def listen(watch: Watch) -> None:
    """Attach the check."""
    still: weakref.WeakKeyDictionary[AveragedModel, int] = weakref.WeakKeyDictionary()
    """The averages without an update, with the number of steps before they were made."""

    def average_made(average: AveragedModel) -> None:
        still[average] = watch.count("after_step")

    def average_updated(average: AveragedModel) -> None:
        still.pop(average, None)

    def average_called(average: AveragedModel) -> None:
        total = watch.count("after_step")
        if total - still.get(average, total) < _STEPS:
            return
        since = total - still.pop(average)
        if int(average.n_averaged) == 0:
            text = f"this {type(average).__name__} is used, and was not updated in {since} steps"
            watch.report("average_not_updated", text, step=total)

    watch.listen("average_made", average_made)
    watch.listen("average_updated", average_updated)
    watch.listen("average_called", average_called)
