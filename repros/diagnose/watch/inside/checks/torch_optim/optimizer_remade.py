"""An optimizer is made once for a training, and keeps its moments.

## What it does
Reports `optimizer_remade` when a third optimizer of one class with the same options takes its first step over the
parameters of two earlier ones, each of which had gathered moments in one pass over the same data set, if none was
loaded and nothing but their steps has changed the parameters.

## Why is this bad?
Momentum and Adam's moments are thrown away in each epoch.

## Example
`def train_epoch(model): optimizer = Adam(model.parameters()); ...`.

## Known misses
Optimizers without a state. Data from no DataLoader, or from another data set each time, as for the tasks of continual
learning. Optimizers that see several passes. Weights that are loaded, averaged or reset in between, as in federated
learning. Different options, as for the phases of a fine-tuning.

## Cost
A set of ids and one parameter's version when an optimizer takes its first step, and for each pass.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, unstepped
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "optimizer_remade",
        "an optimizer is made for each epoch, and its moments are lost",
        "make the optimizer once, before the loop over epochs",
    ),
)

_REMADE = 2
_STEPS = 2
"""Steps after which there are moments worth keeping."""


class _Life(NamedTuple):
    """An optimizer that trains, with its class, options, parameters and data."""

    optimizer: weakref.ref[Optimizer]
    """A weak reference to it."""
    kind: tuple[str, str]
    """Its class and options."""
    parameters: frozenset[int]
    data: int | None
    """The `id` of its only data set; None for none or several."""
    passes: int
    """The passes over data that had begun before its first step."""


class _Remade:
    """The last optimizer, and the number that were replaced before it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._life: _Life | None = None
        self._replaced = 0
        self._steps = 0
        self._sample: weakref.ref[Parameter] | None = None
        """A weak reference to a parameter with a state."""
        self._version = 0
        """Its version after the last step."""
        self._loaded: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._passes: list[int] = []
        """The data set of each pass in which something was trained, by `id`, as of the last few."""
        self._begun: int | None = None
        self._count = 0

    def loaded(self, optimizer: Optimizer, *_: object) -> None:
        self._loaded.add(optimizer)

    def made(self, _: object) -> None:
        self._watch.listen("before_step", self.before_step)

    def pass_begins(self, data: object, _: int) -> None:
        self._watch.listen("before_step", self.before_step)
        self._begun = id(data)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        if not unstepped:
            self._watch.ignore("before_step", self.before_step)
        if self._begun is not None:
            self._passes, self._begun = [*self._passes[-7:], self._begun], None
            self._count += 1
        if number != 1:
            return
        before, steps = self._life, self._steps
        held = parameters_of(optimizer)
        kind = (type(optimizer).__name__, repr(sorted(optimizer.defaults.items(), key=str)))
        data = self._passes[-1] if self._passes else None
        if data is not None:
            self._watch.listen("after_step", self.after_step)
        self._life = _Life(weakref.ref(optimizer), kind, frozenset(map(id, held)), data, self._count)
        self._steps = 0
        if before is None or optimizer in self._loaded or steps < _STEPS or not self._follows(before):
            self._replaced = 0
            return
        self._replaced += 1
        if self._replaced == _REMADE:
            text = f"a new {kind[0]} is made for each pass over the data: the moments of {_REMADE} were thrown away"
            self._watch.report("optimizer_remade", text)

    def _follows(self, before: _Life) -> bool:
        """Return whether the present optimizer replaces one that was used in one pass over the same data."""
        life, parameter = self._life, self._sample() if self._sample is not None else None
        return (
            life is not None
            and life[1:4] == before[1:4]
            and life.data is not None
            and life.passes == before.passes + 1
            and parameter is not None
            and parameter._version == self._version
        )

    def after_step(self, optimizer: Optimizer, _: int) -> None:
        life = self._life
        is_own = life is not None and life.optimizer() is optimizer
        if life is None or life.data is None or not is_own:
            self._life = None  # several optimizers train in turn
            self._watch.ignore("after_step", self.after_step)
            return
        self._steps += 1
        if self._steps == _STEPS:
            # Before torch 2.4, SGD without momentum keeps None for each parameter.
            moments = ((one, state) for one, state in optimizer.state.items() if hasattr(one, "_version"))
            held = [one for one, state in moments if any(value is not None for value in state.values())]
            self._sample = weakref.ref(held[0]) if held else None
            self._life = life if held else None
        parameter = self._sample() if self._sample is not None else None
        if parameter is not None:
            self._version = parameter._version


def listen(watch: Watch) -> None:
    """Attach the check."""
    remade = _Remade(watch)
    watch.listen_to(remade, "made", "loaded", "pass_begins")
