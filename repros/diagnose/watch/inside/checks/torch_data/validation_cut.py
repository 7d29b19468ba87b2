"""An evaluation sees all samples of its data.

## What it does
Reports `validation_cut` (possible) for a loader that shuffles and drops its last batch, with samples left over, if it
was read to its end twice in eval mode, without a backward in between and after an optimizer's step.

## Why is this bad?
Each evaluation leaves out other samples, so that scores differ between epochs and between runs for no other reason.

## Example
One helper that makes both loaders with `shuffle=True, drop_last=True`.

## Known misses
Evaluations in train mode, samplers that shuffle by themselves, data sets without a length.

## Cost
A comparison of two counts at the first and the last batch of a pass.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.loaders import LoaderPass
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module

CHECKS = (
    Check(
        "validation_cut",
        "a validation loader shuffles and drops the last batch, and so leaves out other samples each time",
        "`DataLoader(data, batch_size, shuffle=False, drop_last=False)` for the validation",
    ),
)

_TIMES = 2


class _Passes:
    """The passes over loaders that leave samples out."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._is_training = True
        """The mode that was set last."""
        self._begun: dict[int, int] = {}
        """The number of backward passes when a pass began, by its `id`."""
        self._times: Counter[int] = Counter()

    def switching(self, _: Module, mode: bool) -> None:
        self._is_training = mode

    def fetched(self, current: LoaderPass) -> None:
        if not current.is_random or self._is_training or not self._watch.count("after_step"):
            return
        backwards = self._watch.count("before_backward")
        if current.fetched == 1:
            self._begun = {id(current): backwards}
            return
        if self._begun.get(id(current)) != backwards:
            return
        batches, samples, size = _sizes(current)
        if current.fetched == batches and samples > batches * size:
            self._times[current.dataset] += 1
            if self._times[current.dataset] == _TIMES:
                text = (
                    f"possible: an evaluation leaves out {samples - batches * size} of {samples} samples, others each"
                    " time: its loader shuffles, and drops the last batch"
                )
                numbers = {"samples": samples, "left out": samples - batches * size}
                self._watch.report("validation_cut", text, place=user_location(), numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the check."""
    passes = _Passes(watch)
    watch.listen("switching", passes.switching)
    watch.listen("fetched", passes.fetched)


def _sizes(current: LoaderPass) -> tuple[int, int, int]:
    """Return the batches of a pass, the samples of its sampler and the size of a batch; zeros if none is dropped."""
    sampler: Any = current.chain[0] if current.chain else None
    if type(sampler) is not sys.modules["torch.utils.data"].BatchSampler or not sampler.drop_last:
        return 0, 0, 0
    return len(sampler), len(sampler.sampler), int(sampler.batch_size)
