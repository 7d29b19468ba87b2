"""An average of weights is updated after each step, and before it is used.

## What it does
`average_not_updated`: reports a `torch.optim.swa_utils.AveragedModel` that is called and was neither updated nor
loaded, although an optimizer has taken eight steps since it was made. `average_before_step`: reports such a model, or a
copy of a network that was put in eval mode or loaded before the training, whose weights change four times in a row
between a backward and the step that uses it. `average_begun_anew`: reports such a model without an update that is first
updated after the first step of an optimizer that was loaded with its moments. It is only possible where the model
itself was not loaded: a later phase may add an average by design.

## Why is this bad?
The averaged model has its initial weights, or averages each step one step late and never sees the last. An average that
begins anew after a resume has lost the weights of all steps before.

## Example
A training loop without `averaged.update_parameters(model)`.

## Known misses
Averages that were updated once, or whose count of updates came from a checkpoint. Averages in a list or dict, and those
that are written through `.data`. After a resume: optimizers without a state, averages of other classes, and those that
are updated for the first time after a later step, as when an average is meant to begin late.

## Cost
One read of a counter for the first such call; in the first steps, two versions of a weight for each average.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer
    from torch.optim.swa_utils import AveragedModel

CHECKS = (
    Check(
        "average_not_updated",
        "an average of weights is evaluated without an update",
        "`averaged.update_parameters(model)` after each step",
    ),
    Check(
        "average_before_step",
        "an average of weights is updated before the step",
        "update the average after `optimizer.step()`",
    ),
    Check(
        "average_begun_anew",
        "a resumed training begins its average of weights anew",
        "save `averaged.state_dict()` with the model's, and load both",
    ),
)

_STEPS = 8
_TIMES = 4
_LAST = 32
"""The step after which a program is taken to update its average at the right time."""


class _Early:
    """The copies of networks, and when their weights change."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._weights: weakref.WeakKeyDictionary[Module, weakref.ref[Tensor]] = weakref.WeakKeyDictionary()
        """The first weight of each candidate."""
        self._versions: dict[int, int] = {}
        """The version of each weight after the last backward, by its `id`."""
        self._times: weakref.WeakKeyDictionary[Module, int] = weakref.WeakKeyDictionary()

    def add(self, module: Module) -> None:
        """Take a module that may be an average."""
        weight = next((value for value in module.parameters() if value.is_floating_point() and value.numel()), None)
        if weight is not None and not self._watch.count("after_step"):
            self._weights[module] = weakref.ref(weight)
            self._watch.listen("after_backward", self.after_backward)
            self._watch.listen("before_step", self.before_step)

    def switching(self, module: Module, mode: bool) -> None:
        if self._watch.count("after_step"):
            self._watch.ignore("switching", self.switching)
        elif not mode:
            self.add(module)

    def after_backward(self) -> None:
        present = [reference() for reference in self._weights.values()]
        self._versions = {id(weight): weight._version for weight in present if weight is not None}

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        held = {id(parameter) for parameter in parameters_of(optimizer)} if number == 1 else set()
        for module, reference in list(self._weights.items()):
            weight = reference()
            if weight is None or id(weight) in held:
                del self._weights[module]
            elif weight._version == self._versions.get(id(weight), weight._version):
                self._times[module] = 0
            else:
                self._times[module] = self._times.get(module, 0) + 1
                if self._times[module] == _TIMES:
                    name = type(module).__name__
                    text = (
                        f"the weights of this {name} are updated between the backward and the step: it averages the"
                        " weights that the step is about to change"
                    )
                    self._watch.report("average_before_step", text, step=number, place=user_location())
        if number >= _LAST or not self._weights:
            self._watch.ignore("after_backward", self.after_backward)
            self._watch.ignore("before_step", self.before_step)


class _Still:
    """The averages without an update."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made: weakref.WeakKeyDictionary[Module, int] = weakref.WeakKeyDictionary()
        """The number of steps before each was made."""
        self._filled: weakref.WeakSet[Module] = weakref.WeakSet()
        """Those whose weights were loaded, without a count of updates."""
        self._resumed = -1
        """The number of steps before an optimizer was loaded with its moments."""

    def made(self, average: AveragedModel) -> None:
        self._made[average] = self._watch.count("after_step")

    def state_loaded(self, module: Module, state: Mapping[str, object], *_: object) -> None:
        if "n_averaged" in state:
            self._made.pop(module, None)
        else:
            self._filled.update(average for average in self._made if average.module is module)

    def optimizer_loaded(self, optimizer: Optimizer, *_: object) -> None:
        if optimizer.state:
            self._resumed = self._watch.count("after_step")

    def updated(self, average: AveragedModel) -> None:
        is_first = self._made.pop(average, None) is not None
        total = self._watch.count("after_step")
        if is_first and 0 <= self._resumed == total - 1 and int(average.n_averaged) == 0:
            possible = "" if average in self._filled else "possible: "
            text = (
                f"{possible}this {type(average).__name__} has no update, and the optimizer continues a training: it"
                " begins anew"
            )
            self._watch.report("average_begun_anew", text, step=total)

    def called(self, average: AveragedModel) -> None:
        total = self._watch.count("after_step")
        if total - self._made.get(average, total) < _STEPS:
            return
        since = total - self._made.pop(average)
        if int(average.n_averaged) == 0:
            text = f"this {type(average).__name__} is used, and was not updated in {since} steps"
            self._watch.report("average_not_updated", text, step=total)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    still, early = _Still(watch), _Early(watch)

    def average_made(average: AveragedModel) -> None:
        still.made(average)
        early.add(average)

    def state_loaded(module: Module, state: Mapping[str, object], *_: object) -> None:
        still.state_loaded(module, state)
        early.add(module)

    watch.listen("loaded", still.optimizer_loaded)
    watch.listen("average_made", average_made)
    watch.listen("average_updated", still.updated)
    watch.listen("average_called", still.called)
    watch.listen("switching", early.switching)
    watch.listen("state_loaded", state_loaded)
