"""An average of weights moves with the weights that it averages.

## What it does
`average_rounded_away`: reports a `torch.optim.swa_utils.AveragedModel` in bfloat16 or float16 of which, after 16
updates, hardly any value has changed, although most of the trained weights that it averages have. Possible: the same
of a copy of a network, in eval mode or loaded, whose weights are written between the steps.

## Why is this bad?
An update moves the average by 1 - decay of a difference that is itself small. In bfloat16 a number changes by no less
than one part in 256, so each update is rounded to none. The averaged model has its first weights for ever.

## Example
`AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9999))` of a model in bfloat16.

## Known misses
Averages of which more than one value in ten moves. Averages in a list or dict, and sharded ones. Weights of a shape of
which the optimizer has another number than the average: it is unknown which of them is averaged where.

## Cost
The version of a weight in each step for each such average, until 16 updates; two comparisons of 64 values of at most
four weights.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.values import is_capturing, is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer
    from torch.optim.swa_utils import AveragedModel

CHECKS = (
    Check(
        "average_rounded_away",
        "the updates of an average in low precision are rounded to none",
        "keep the average in float32: `AveragedModel(model, avg_fn=get_ema_avg_fn(decay)).float()`",
    ),
)

_FIRST = 2
"""The update whose result is kept: the first one copies the weights."""
_UPDATES = 16
_WEIGHTS = 4
_VALUES = 64
_FEW, _MOST = 0.1, 0.5
"""The share of values that change in an average at rest, at most, and of a trained weight, at least."""


class _Kept(NamedTuple):
    """A weight, and its values after the update `_FIRST`."""

    weight: weakref.ref[Tensor]
    before: Tensor

    def changed(self) -> float:
        """Return the share of values that have changed; 0 if the weight is gone."""
        weight = self.weight()
        return float((_values(weight) != self.before).float().mean()) if weight is not None else 0.0


class _Copy:
    """A network that may be an average."""

    def __init__(self, module: Module, *, is_average: bool) -> None:
        self.name = type(module).__name__
        self.is_average = is_average
        self.held = frozenset(map(id, module.parameters()))
        weights = [weight for weight in module.parameters() if is_plain(weight)][:_WEIGHTS]
        self._weights = [weakref.ref(weight) for weight in weights]
        self._version: int | None = weights[0]._version if weights else None
        self.updates = 0
        self.kept: list[tuple[_Kept, _Kept]] = []
        """Weights of the average, each with the trained weight that it averages."""

    def weights(self) -> list[Tensor]:
        """Return its weights; none if some are gone."""
        live = [weight for reference in self._weights if (weight := reference()) is not None]
        return live if len(live) == len(self._weights) else []

    def count(self) -> bool:
        """Return whether it was written since the last call."""
        weights = self.weights()
        if not weights or weights[0]._version == self._version:
            return False
        self._version = weights[0]._version
        self.updates += 1
        return True


class _Averages:
    """The copies of networks in low precision, until they have moved."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._copies: weakref.WeakKeyDictionary[Module, _Copy] = weakref.WeakKeyDictionary()

    def average_made(self, average: AveragedModel) -> None:
        self._add(average, is_average=True)

    def switching(self, module: Module, mode: bool) -> None:
        if self._watch.count("after_step"):
            self._watch.ignore("switching", self.switching)
        elif not mode:
            self._add_copy(module)

    def state_loaded(self, module: Module, *_: object) -> None:
        # What a load writes is no update: a copy that is loaded again and again begins anew each time.
        written = {id(weight) for weight in module.parameters()} if self._copies else set()
        for other, known in list(self._copies.items()):
            if not written.isdisjoint(known.held):
                self._add(other, is_average=known.is_average)
        if not self._watch.count("after_step"):
            self._add_copy(module)

    def _add_copy(self, module: Module) -> None:
        first = next(iter(module.parameters()), None)
        # A module comes before its parts.
        if not any(id(first) in known.held for known in self._copies.values()):
            self._add(module, is_average=False)

    def _add(self, module: Module, *, is_average: bool) -> None:
        import torch

        first = next(iter(module.parameters()), None)
        if first is not None and first.dtype in {torch.bfloat16, torch.float16} and is_plain(first):
            self._copies[module] = _Copy(module, is_average=is_average)
            self._watch.listen("before_step", self.before_step)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        held = {id(parameter) for parameter in parameters_of(optimizer)} if number == 1 else set()
        for module, copy in list(self._copies.items()):
            weights = copy.weights()
            if not weights or any(id(weight) in held for weight in weights):
                del self._copies[module]
            elif copy.count() and not is_capturing():
                self._inspect(module, copy, optimizer, number)
        if not self._copies:
            self._watch.ignore("before_step", self.before_step)

    def _inspect(self, module: Module, copy: _Copy, optimizer: Optimizer, number: int) -> None:
        if copy.updates == _FIRST:
            pairs = _counterparts(module.parameters(), parameters_of(optimizer))
            copy.kept = [(_keep(mean), _keep(trained)) for mean, trained in itertools.islice(pairs, _WEIGHTS)]
        elif copy.updates >= _FIRST + _UPDATES:
            del self._copies[module]
            if _is_left_behind(copy.kept):
                self._report(copy, number)

    def _report(self, copy: _Copy, number: int) -> None:
        dtype = str(copy.kept[0][0].before.dtype).replace("torch.", "")
        possible = "" if copy.is_average else "possible: "
        text = (
            f"{possible}the weights of this {copy.name} have not moved in {_UPDATES} updates, and the trained ones"
            f" have: in {dtype} each update is rounded to none"
        )
        numbers = {"updates": _UPDATES}
        self._watch.report("average_rounded_away", text, step=number, numbers=numbers, place=user_location())


def listen(watch: Watch) -> None:
    """Attach the check."""
    watch.listen_to(_Averages(watch), "average_made", "switching", "state_loaded")


def _values(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1)[:_VALUES].clone()


def _keep(weight: Tensor) -> _Kept:
    return _Kept(weakref.ref(weight), _values(weight))


def _counterparts(means: Iterable[Tensor], held: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the weights of an average whose counterpart is trained, with it: both have the same order in each shape."""
    own, others = [one for one in means if is_plain(one)], [one for one in held if is_plain(one)]
    # A copy keeps what is frozen, unless all of the copy is.
    if any(one.requires_grad for one in own):
        own, others = ([one for one in part if one.requires_grad] for part in (own, others))
    for shape in dict.fromkeys(one.shape for one in own if one.numel()):
        averaged, alike = ([one for one in part if one.shape == shape] for part in (own, others))
        if len(averaged) == len(alike):
            yield from ((mean, one) for mean, one in zip(averaged, alike) if one.requires_grad)


def _is_left_behind(kept: Iterable[tuple[_Kept, _Kept]]) -> bool:
    """Return whether trained weights have moved, and their averages have not."""
    changed = [mean.changed() for mean, trained in kept if trained.changed() > _MOST]
    return bool(changed) and sum(changed) / len(changed) < _FEW
