"""Weights that are kept for later are a copy.

## What it does
`kept_weights_changed`: reports a module that loads an earlier `state_dict` of its own that was not copied, if its
weights have changed since. `kept_weights_saved`: reports that `torch.save` writes such a state, taken after an
optimizer's step, if later steps have changed it. `kept_weights_written`: reports, after four steps in a row, parameters
of an optimizer that are written to twice or more between its steps, or once after another `state_dict` was taken, while
an earlier state of theirs is kept: an average that is kept in it is written into the weights themselves.

## Why is this bad?
`state_dict` returns references. What was kept is what the module has already, and the best weights are lost.

## Example
`best = model.state_dict()` in the place of `copy.deepcopy(model.state_dict())`.

## Known misses
States of another module, copies, and states from a file. States that torch.distributed.checkpoint loads into, as it
reads a checkpoint into a state of the module. States taken before the first step, or saved as soon as they were taken.
Writes through `.data`, as to clip weights. An average's own weights, which no optimizer holds.

## Cost
One entry for each live `state_dict`; one look at a tensor for each load; a walk over what is saved; while a state is
kept, the versions of four tensors in each step.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

CHECKS = (
    Check("kept_weights_changed", "a loaded `state_dict` is no copy and has changed with the weights"),
    Check(
        "kept_weights_saved",
        "a saved `state_dict` is no copy and has changed with the weights",
        "keep a copy: `best = copy.deepcopy(model.state_dict())`",
    ),
    Check(
        "kept_weights_written",
        "a moving average is written into the weights themselves",
        "keep a copy, such as `{name: value.clone() for name, value in model.state_dict().items()}`",
    ),
)

_MOST = 1000
"""The most states that are tracked; a program that takes more of them does not keep them."""
_TIMES = 4
_SAMPLES = 4
_DEPTH = 5


class _Taken(NamedTuple):
    """A state that was taken."""

    sample: weakref.ref[Tensor]
    """A weak reference to its first tensor."""
    version: int
    """The tensor's `_version` at that time."""
    steps: int
    """The steps of all optimizers at that time."""


class _Kept:
    """The states that were taken and may be kept."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._taken: dict[int, _Taken] = {}
        self._written: dict[int, tuple[int, int]] = {}
        """By sample: its `_version` after the last step, and the number of steps in a row with a write after them."""
        self._is_retaken = False
        """Whether a state was taken since the last step."""

    def state_taken(self, _: object, state: object) -> None:
        sample = _sample(state)
        self._is_retaken = True
        if sample is not None:
            while len(self._taken) >= _MOST:
                self._taken.pop(next(iter(self._taken)))
            self._taken[id(sample)] = _Taken(weakref.ref(sample), sample._version, self._steps())
            self._watch.listen_to(self, "before_step", "after_step")

    def _steps(self) -> int:
        return self._watch.count("after_step")

    def _changed(self, state: object) -> _Taken | None:
        """Return the record of a state if it has changed since it was taken."""
        sample = _sample(state)
        taken = self._taken.get(id(sample))
        if taken is None or sample is None:
            return None
        is_same = taken.sample() is sample
        return taken if is_same and sample._version != taken.version else None

    def state_loading(self, module: Module, state: object) -> None:
        taken, sample = self._changed(state), _sample(state)
        if taken is None or sample is None or _loads_a_checkpoint():
            return
        places = {parameter.data_ptr() for parameter in module.parameters() if type(parameter.data_ptr()) is int}
        if sample.data_ptr() in places:
            name = type(module).__name__
            text = f"the weights that this {name} loads are its own and have changed: what was kept is no copy"
            self._watch.report("kept_weights_changed", text)

    def saving(self, saved: object) -> None:
        for state in _states(saved):
            taken = self._changed(state)
            if taken is not None and 0 < taken.steps < self._steps():
                steps = self._steps() - taken.steps
                text = f"the weights that are saved were taken {steps} steps ago and have changed: they are no copy"
                self._watch.report("kept_weights_saved", text, numbers={"steps": steps})

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        for key, (version, count) in list(self._written.items()):
            taken = self._taken.get(key)
            sample = taken.sample() if taken is not None else None
            # A clipping of weights is one write.
            if sample is None or sample._version - version < 1 + (not self._is_retaken):
                del self._written[key]
                continue
            self._written[key] = (version, count + 1)
            if count + 1 == _TIMES and _holds(optimizer, sample):
                text = (
                    f"weights of this {type(optimizer).__name__} are written between its steps, and a state of them is"
                    " kept without a copy: is it an average?"
                )
                self._watch.report("kept_weights_written", text, step=number)

    def after_step(self, *_: object) -> None:
        self._is_retaken = False
        if not self._taken:
            self._watch.ignore_from(self, "before_step", "after_step")
        if not self._taken or self._watch.compiles:  # the steps of a compiled optimizer are not observed
            return
        written = {}
        for key, taken in list(itertools.islice(self._taken.items(), _SAMPLES)):
            sample = taken.sample()
            if sample is None:
                del self._taken[key]
            elif taken.steps < self._steps() - 1:
                written[key] = (sample._version, self._written.get(key, (0, 0))[1])
        self._written = written


def listen(watch: Watch) -> None:
    """Attach the checks."""
    kept = _Kept(watch)
    watch.listen_to(kept, "state_taken", "state_loading", "saving")


def _loads_a_checkpoint() -> bool:
    """Return whether torch.distributed.checkpoint loads, which reads a checkpoint into a state of the module first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and "torch/distributed/checkpoint/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def _sample(state: object) -> Tensor | None:
    """Return the first floating tensor of a state, or None; a parameter itself was not taken by `state_dict`."""
    import torch

    for value in state.values() if isinstance(state, Mapping) else ():
        if type(value) is torch.Tensor and value.is_floating_point() and value.numel() and not value.is_meta:
            return value
    return None


def _states(saved: object, depth: int = 0) -> Iterator[Mapping[str, object]]:
    """Yield each dict in what is saved."""
    if isinstance(saved, Mapping) and depth < _DEPTH:
        yield saved
        for value in list(saved.values()):
            yield from _states(value, depth + 1)


def _holds(optimizer: Optimizer, sample: Tensor) -> bool:
    return any(parameter.data_ptr() == sample.data_ptr() for parameter in parameters_of(optimizer))
