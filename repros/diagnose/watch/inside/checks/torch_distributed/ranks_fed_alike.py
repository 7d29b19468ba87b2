"""Ranks that train one model read different data and exchange what they learn.

## What it does
`ranks_fed_alike`: reports a DistributedDataParallel whose first input tensor (or that of the first layer inside it that
gets one) is the same on two ranks in steps 1, 2, 4 and 8 of an optimizer, and differs between these steps.
`ranks_not_reduced`: reports parameters of an optimizer that have the same norms on two ranks before its first step, and
gradients and parameters of other norms in its eighth step, if nothing as large as one of them was sent to other ranks
until the program's end. The process outside compares. Both findings begin with `possible`: a program may mean it.

## Why is this bad?
With the same data on each rank, more ranks train no faster. Without communication, the ranks train separate models, of
which one is kept.

## Example
`DataLoader(data, shuffle=True)` without a DistributedSampler, after the same `torch.manual_seed` on each rank.

## Known misses
`ranks_fed_alike` reports nothing for tensors with few different values, for a batch that is the same in each step (a
benchmark, a test of overfitting), for compiled programs, fewer than eight steps, FSDP, tensor and pipeline parallel.
`ranks_not_reduced` reports nothing for models that begin differently or have different learning rates on each rank
(ensembles, searches), for parameters in a DDP, shared between processes (Hogwild) or sharded (DTensor), after a
collective of a parameter, a gradient or a tensor as large as one (gradients reduced by hand, local SGD), however late,
and in programs with remote procedure calls.

## Cost
A sample of at most 2048 numbers of one tensor in these steps, and four reductions over the parameters and gradients.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps, unstepped
from repros.diagnose.watch.inside.observe.patch import Args
from repros.diagnose.watch.inside.observe.replicas import Replica
from repros.diagnose.watch.inside.values import digest, stable_digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "ranks_fed_alike",
        "two ranks of a replicated module are trained on the same data",
        "shard the data: `DataLoader(data, sampler=DistributedSampler(data))`, or seed the data by rank",
    ),
    Check(
        "ranks_not_reduced",
        "ranks train copies of one model without a wrapper and without communication",
        "wrap the model in DistributedDataParallel, or all_reduce each gradient before the step",
    ),
)

_STEPS = (1, 2, 4, 8)
_SAMPLE = 2048
_VALUES = 16
"""The fewest different values of data; a constant or a mask has fewer."""


class _Fed:
    """The inputs of each wrapper."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._open: Replica | None = None
        """The replica in a call of which no tensor input was seen yet."""
        self._entered: dict[int, tuple[tuple[int, ...], Tensor]] = {}
        """By a replica's `id`: the shape, and a sample of shape (n,), of its first input since the last step."""
        self._digests: weakref.WeakKeyDictionary[Optimizer, list[str]] = weakref.WeakKeyDictionary()

    def begins(self, _: object = None) -> None:
        """Listen for inputs, from the first replica on, and again with each optimizer."""
        if replicas.replicas:
            self._watch.listen("fed", self.fed)

    def fed(self, module: Module, inputs: Args) -> None:
        for replica in replicas.replicas:
            if replica.module() is module and sys.modules["torch"].is_grad_enabled():
                self._open = None if id(replica) in self._entered else replica
                self._watch.listen("after_step", self.after_step)
        tensor = _tensor(inputs) if self._open is not None else None
        if tensor is not None:
            self._entered[id(self._open)] = tensor.shape, _sample_of(tensor)
            self._open = None

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        entered, self._entered, self._open = self._entered, {}, None
        self._watch.ignore("after_step", self.after_step)
        if number not in _STEPS:
            if not unstepped and min(steps.values()) > _STEPS[-1]:
                self._watch.ignore("fed", self.fed)
            return
        held = {id(parameter) for parameter in parameters_of(optimizer)}
        for replica in replicas.replicas:
            if id(replica) in entered and held & replica.trained:
                self._note(replica, optimizer, number, _digest_of(*entered[id(replica)]))
                return

    def _note(self, replica: Replica, optimizer: Optimizer, number: int, value: str) -> None:
        digests = self._digests.setdefault(optimizer, [])
        digests.append(value)
        if number == _STEPS[-1] and len({*digests} - {""}) == len(_STEPS) and self._watch.is_enabled("ranks_fed_alike"):
            text = (
                "possible: two ranks are trained on the same data, which entered their wrapper in steps 1, 2, 4 and 8"
            )
            details = {"key": [*replica.key, "fed"], "number": number, "what": "digest of the data", "text": text}
            details.update(value=stable_digest(*digests), wanted="different")
            self._watch.events.write("fact", check="ranks_fed_alike", **details)


class _Unreduced:
    """The optimizers of whose parameters and gradients nothing is communicated."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._first: weakref.WeakKeyDictionary[Optimizer, tuple[int, list[float]]] = weakref.WeakKeyDictionary()
        """The number of each optimizer in the order of first steps, and the norms before that step."""
        self._sizes: set[int] = set()
        """The numbers of elements of these optimizers' parameters."""
        self._has_communicated = False

    def collective(self, _: object, name: str, tensors: list[Tensor]) -> None:
        if self._has_communicated or not self._sizes or name == "barrier":
            return
        # One by one, in one tensor, or as bytes.
        if any(tensor.numel() in self._sizes or tensor.numel() >= max(self._sizes) for tensor in tensors):
            self._has_communicated = True
            self._watch.events.write("communicated", key=_key())

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        if number != 1 or self._has_communicated or not _is_one_of_several():
            return
        parameters = [parameter for parameter in parameters_of(optimizer) if parameter.requires_grad]
        wrapped = {key for replica in replicas.replicas for key in replica.trained}
        if not parameters or not all(_is_own(parameter) and id(parameter) not in wrapped for parameter in parameters):
            return
        sizes = {parameter.numel() for parameter in parameters} - {1}  # a loss that is reduced has one
        if not sizes:
            return
        self._sizes |= sizes
        norms = digest(dict(zip(map(str, range(len(parameters))), parameters)), self._watch.known())["norms"]
        self._first[optimizer] = (len(self._first), norms)

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        if number != _STEPS[-1] or optimizer not in self._first or self._has_communicated:
            return
        place, first = self._first[optimizer]
        parameters = [parameter for parameter in parameters_of(optimizer) if parameter.requires_grad]
        names = list(map(str, range(len(parameters))))
        norms, gradients = (
            digest(dict(zip(names, tensors)), self._watch.known())["norms"]
            for tensors in (parameters, [parameter.grad for parameter in parameters])
        )
        if self._watch.is_enabled("ranks_not_reduced") and not _has_rpc():
            text = (
                "possible: ranks train copies of one model that diverge: no DistributedDataParallel holds it, and"
                " neither its gradients nor its parameters were sent to other ranks"
            )
            details = {"key": [*_key(), place, len(first)], "number": number, "text": text}
            details.update(first=first, norms=norms, gradients=gradients)
            details["rates"] = [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
            self._watch.events.write("eighth_step", check="ranks_not_reduced", **details)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    fed, unreduced = _Fed(watch), _Unreduced(watch)
    for name in ("made", "replica"):
        watch.listen(name, fed.begins)
    fed.begins()  # a replica that was made before this watch
    watch.listen("collective", unreduced.collective)
    watch.listen("before_inspected_step", unreduced.before_step)
    watch.listen("after_inspected_step", unreduced.after_step)


def _tensor(inputs: Args) -> Tensor | None:
    """Return the first tensor of a module's arguments that is data, or None."""
    import torch

    for value in inputs:
        if type(value) is torch.Tensor and value.layout is torch.strided and value.numel() and not value.is_meta:
            return value
    return None


def _sample_of(tensor: Tensor) -> Tensor:
    """Return a copy of at most `_SAMPLE` evenly spaced elements of a tensor of any shape, of shape (n,)."""
    import torch

    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        return flat[:: max(1, flat.numel() // _SAMPLE)][:_SAMPLE].clone()


def _digest_of(shape: tuple[int, ...], sample: Tensor) -> str:
    """Return a digest of a tensor, the same in all processes; "" for one with few different values.

    Args:
        shape: the tensor's.
        sample: some of its values, of shape (n,); NaN counts as one value.
    """
    values = [repr(value) for value in sample.tolist()]
    return stable_digest(*shape, *values) if len({*values}) >= _VALUES else ""


def _is_one_of_several() -> bool:
    dist = sys.modules.get("torch.distributed")
    is_there = dist is not None and dist.is_available() and dist.is_initialized()
    return is_there and _world_size() > 1


def _has_rpc() -> bool:
    rpc = sys.modules.get("torch.distributed.rpc.api")
    return rpc is not None and rpc._is_current_rpc_agent_set()


def _key() -> list[object]:
    return [replicas.run_name(), list(range(_world_size()))]


def _world_size() -> int:
    import torch.distributed as dist

    return dist.get_world_size()


def _is_own(parameter: Parameter) -> bool:
    """Return whether a parameter is whole, and this process's alone."""
    import torch

    is_plain = type(parameter) in {torch.nn.Parameter, torch.Tensor} and not parameter.is_meta
    return is_plain and not (parameter.device.type == "cpu" and parameter.is_shared())
