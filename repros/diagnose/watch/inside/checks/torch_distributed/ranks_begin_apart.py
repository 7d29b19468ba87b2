"""Ranks that reduce their gradients by hand begin with one model, and leave no parameter out.

## What it does
Compares what ranks write before the first and the eighth step of an optimizer, if the program has called all_reduce on
gradients of its parameters, one by one or in one tensor. `ranks_begin_apart`: all gradients are the same on two ranks,
and the parameters were others before the first step. `parameter_not_reduced` (possible): the parameters were the same,
and the gradients are the same for some of them and not for others.

## Why is this bad?
The ranks train separate models, of which one is kept; DistributedDataParallel would send the first rank's.

## Example
A loop of `dist.all_reduce(parameter.grad)` over `model.encoder.parameters()`, where the model has a head as well.

## Known misses
Trainings of fewer than eight steps. Parameters in a DistributedDataParallel, or sharded (DTensor). Programs that
exchange parameters instead of gradients.

## Cost
The addresses of what is reduced in the first eight steps, and three reductions over the parameters and gradients.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.values import address_of, digest, is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "ranks_begin_apart",
        "ranks reduce their gradients by hand, and begin with different weights",
        "`dist.broadcast(parameter.data, 0)` for each parameter before the first step, or the same seed on all ranks",
    ),
    Check(
        "parameter_not_reduced",
        "ranks reduce their gradients by hand, and leave a parameter out",
        "reduce the gradients of all parameters that the optimizer has",
    ),
)

_STEP = 8


class _ByHand:
    """The optimizers whose gradients the program reduces."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._first: weakref.WeakKeyDictionary[Optimizer, tuple[int, list[float]]] = weakref.WeakKeyDictionary()
        """The number of each optimizer in the order of first steps, and the norms before that step."""
        self._reduced: dict[int, int] = {}
        """The sizes of the tensors that were reduced since the last step, by address."""
        self._place: str | None = None
        """The location of the first reduction."""

    def collective(self, _: object, name: str, tensors: list[Tensor]) -> None:
        if name in {"all_reduce", "all_reduce_coalesced"}:
            self._place = self._place or user_location()
            self._reduced.update((address, one.numel()) for one in tensors if (address := address_of(one)) is not None)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        reduced, self._reduced = self._reduced, {}
        if number > _STEP:
            self._watch.ignore("collective", self.collective)
            self._watch.ignore("before_inspected_step", self.before_step)
        elif number == 1 and reduced:
            parameters = _own(optimizer)
            if parameters:
                self._first[optimizer] = len(self._first), self._norms(parameters)
        elif number == _STEP and optimizer in self._first:
            self._write(optimizer, reduced)

    def _write(self, optimizer: Optimizer, reduced: dict[int, int]) -> None:
        place, first = self._first[optimizer]
        parameters = _own(optimizer)
        gradients = [parameter.grad for parameter in parameters]
        are_plain = all(gradient is not None and is_plain(gradient) for gradient in gradients)
        if len(first) != len(parameters) or not are_plain:
            return
        in_one = max(reduced.values(), default=0) >= sum(parameter.numel() for parameter in parameters)
        if not in_one and not any(address_of(gradient) in reduced for gradient in gradients if gradient is not None):
            return
        checks = {
            what: name if self._watch.is_enabled(name) else None
            for what, name in (("apart", "ranks_begin_apart"), ("left_out", "parameter_not_reduced"))
        }
        self._watch.events.write(
            "reduced_step",
            checks=checks,
            key=[replicas.run_name(), list(range(_world_size())), place, len(first)],
            number=_STEP,
            place=self._place,
            first=first,
            norms=self._norms(parameters),
            gradients=self._norms(gradients),
            shapes=[list(parameter.shape) for parameter in parameters],
        )

    def _norms(self, tensors: list[Tensor] | list[Parameter] | list[Tensor | None]) -> list[float]:
        norms: list[float] = digest(dict(zip(map(str, range(len(tensors))), tensors)), self._watch.known())["norms"]
        return norms


def listen(watch: Watch) -> None:
    """Attach the checks."""
    by_hand = _ByHand(watch)
    watch.listen("collective", by_hand.collective)
    watch.listen("before_inspected_step", by_hand.before_step)


def _own(optimizer: Optimizer) -> list[Parameter]:
    """Return the parameters that an optimizer trains, or none if some are wrapped or not whole."""
    parameters = [parameter for parameter in parameters_of(optimizer) if parameter.requires_grad]
    wrapped = {key for replica in replicas.replicas for key in replica.trained}
    is_own = all(is_plain(parameter) and id(parameter) not in wrapped for parameter in parameters)
    return parameters if is_own and _world_size() > 1 else []


def _world_size() -> int:
    distributed = sys.modules.get("torch.distributed")
    is_there = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if distributed is not None and is_there else 1
