"""Optimizer states match their parameters, and belong to one optimizer alone.

## What it does
`state_strides`: reports, with `fused=True` on the CPU, whose kernels ignore strides, a state or gradient with other
strides than the parameter. `state_device`: reports a state of one of torch's own optimizers, of its parameter's shape,
on another device than the parameter. `state_step_device`: reports it of the step counter of a fused optimizer alone.
These are checked before an optimizer's first step, its first after a load, and each inspected step. `state_reused`:
reports a loaded dict with a tensor that was loaded before, uncopied, and that an optimizer has written to since.
`state_shared`: reports a step of an optimizer that shares a loaded, uncopied state with another one, if the other has
stepped in between and has changed that state. `state_uninitialised`: reports a step of a fused SGD with a momentum
buffer that was made in a step that GradScaler skipped, and that nothing has written to since.

## Why is this bad?
The step uses the moments of other elements, of another training, or uninitialised memory; or it raises.

## Example
Two calls `optimizer.load_state_dict(kept)` with one `kept`, and a training between them.

## Known misses
States that optimizers other than torch's keep elsewhere on purpose. A loaded dict that is still alive, which is
harmless unless it is loaded again. Optimizers that load what they have, that take over from one that is not stepped
again, or that step another one inside their own step.

## Cost
A comparison of strides and devices for each state at those steps; where a state is shared, one look at a tensor in each
step.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("state_strides", "a fused optimizer pairs elements of a state and a parameter of other strides"),
    Check("state_device", "a state is on another device than its parameter"),
    Check("state_step_device", "a fused optimizer's step counter alone is on another device"),
    Check("state_reused", "a kept state is loaded again after training on it has changed it"),
    Check("state_shared", "two optimizers write into one state"),
    Check("state_uninitialised", "an uninitialised momentum buffer"),
)


class _Partner(NamedTuple):
    """Another optimizer with a tensor of this one's state, as of this one's last write to it."""

    other: weakref.ref[Optimizer]
    """A weak reference to it."""
    number: int
    """The number of steps that it had begun."""
    name: str
    tensor: weakref.ref[Tensor]
    """A weak reference to the tensor."""
    version: int


class _States:
    """The states that were loaded, and those that are shared with the loaded dict."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._just_loaded: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._shared: dict[int, tuple[Any, int]] = {}
        self._unwritten: weakref.WeakKeyDictionary[Optimizer, list[tuple[weakref.ref[Tensor], int]]] = (
            weakref.WeakKeyDictionary()
        )
        """The momentum buffers of each fused SGD that a skipped step has made, with their `_version`."""
        self._partners: weakref.WeakKeyDictionary[Optimizer, _Partner] = weakref.WeakKeyDictionary()

    def taken(self, _: object, state: object) -> None:
        # What is taken now and loaded later is meant as it is now: an optimizer may load its own state.
        for _name, tensor in _tensors(state):
            if self._shared.get(id(tensor), (_nothing, 0))[0]() is tensor:
                self._shared[id(tensor)] = (weakref.ref(tensor), tensor._version)

    def loading(self, _: object, state: object = None, *__: object) -> None:
        for name, tensor in _tensors(state):
            reference, version = self._shared.get(id(tensor), (_nothing, 0))
            if reference() is tensor and tensor._version != version:
                text = (
                    f"the state that is loaded has changed since it was loaded before: {name} was trained on in place"
                )
                self._watch.report("state_reused", text, names=[name])
                return

    def loaded(self, optimizer: Optimizer, state: object = None, *_: object) -> None:
        self._just_loaded.add(optimizer)
        self._watch.listen("before_step", self.before_step)
        own = _ids(optimizer)
        shared = [(name, tensor) for name, tensor in _tensors(state) if id(tensor) in own]
        for _name, tensor in shared:
            self._shared[id(tensor)] = (weakref.ref(tensor), tensor._version)
        self._partners.pop(optimizer, None)
        if shared:
            self._watch.listen("after_step", self.after_step)
        for other in list(steps) if shared else ():
            name, tensor = shared[0]
            if other is not optimizer and id(tensor) in _ids(other):
                for owner, partner in ((optimizer, other), (other, optimizer)):
                    self._partners[owner] = _Partner(
                        weakref.ref(partner), steps.get(partner, 0), name, weakref.ref(tensor), tensor._version
                    )

    def _inspect_partner(self, optimizer: Optimizer, number: int) -> None:
        partner = self._partners[optimizer]
        other, tensor = partner.other(), partner.tensor()
        is_written = tensor is not None and tensor._version != partner.version
        if is_written and other is not None and steps.get(other, 0) > partner.number and id(tensor) in _ids(optimizer):
            text = f"two optimizers ({type(optimizer).__name__}, {type(other).__name__}) write into one {partner.name}"
            self._watch.report("state_shared", text, step=number, names=[partner.name])

    def after_step(self, optimizer: Optimizer, _: int) -> None:
        partner = self._partners.get(optimizer)
        if partner is not None:
            other, tensor = partner.other(), partner.tensor()
            if other is None or tensor is None:
                del self._partners[optimizer]
            else:
                now = partner._replace(number=steps.get(other, 0), version=tensor._version)
                self._partners[optimizer] = now
        elif not self._partners:
            self._watch.ignore("after_step", self.after_step)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if number != 1 or type(optimizer).__name__ != "SGD" or not _is_skipped(optimizer):
            return
        fused = [group for group in optimizer.param_groups if group.get("fused")]
        momenta = [
            optimizer.state.get(parameter, {}).get("momentum_buffer")
            for group in fused
            for parameter in group["params"]
        ]
        self._unwritten[optimizer] = [
            (weakref.ref(momentum), momentum._version) for momentum in momenta if momentum is not None
        ]
        self._watch.listen("before_step", self.before_step)

    def _check_for_unwritten(self, optimizer: Optimizer, number: int) -> None:
        present = {id(state.get("momentum_buffer")) for state in optimizer.state.values()}
        for reference, version in self._unwritten.pop(optimizer, []):
            momentum = reference()
            if momentum is not None and id(momentum) in present and momentum._version == version:
                text = "the step that made the momentum of this SGD was skipped: the memory was never written"
                self._watch.report("state_uninitialised", text, step=number, names=["momentum_buffer"])
                return

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        if not (self._unwritten or self._partners or self._just_loaded):
            self._watch.ignore("before_step", self.before_step)
            return
        if optimizer in self._unwritten:
            self._check_for_unwritten(optimizer, number)
        if optimizer in self._partners:
            self._inspect_partner(optimizer, number)
        if optimizer in self._just_loaded:
            self._just_loaded.discard(optimizer)
            if not self._watch.is_due(number):
                self._compare(optimizer, number)

    def before_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        if self._watch.is_due(number):
            self._compare(optimizer, number)

    def _compare(self, optimizer: Optimizer, number: int) -> None:
        for group in optimizer.param_groups:
            is_fused = bool(group.get("fused"))
            for parameter in group["params"]:
                # Most states are on their parameter's device, and strides matter to fused optimizers alone.
                if is_fused or _is_elsewhere(optimizer.state.get(parameter, {}), parameter):
                    _compare(self._watch, optimizer, group, parameter, number)


def _nothing() -> None:
    """Return None, as the reference to no tensor."""


def listen(watch: Watch) -> None:
    """Attach the checks."""
    checks = _States(watch)
    watch.listen_to(checks, "loading", "loaded")
    watch.listen("optimizer_state", checks.taken)
    watch.listen_to(checks, "before_inspected_step", "after_inspected_step")


def _ids(optimizer: Optimizer) -> set[int]:
    """Return the ids of the values in an optimizer's state."""
    return {id(value) for values in optimizer.state.values() if isinstance(values, dict) for value in values.values()}


def _is_skipped(optimizer: Optimizer) -> bool:
    """Return whether the fused kernel skips the present step, as GradScaler tells it to."""
    found_inf = getattr(optimizer, "found_inf", None)
    return found_inf is not None and float(found_inf) > 0


def _tensors(state: object) -> list[tuple[str, Tensor]]:
    import torch

    states = state.get("state", {}) if isinstance(state, dict) else {}
    return [
        (name, value)
        for values in states.values()
        if isinstance(values, dict)
        for name, value in values.items()
        if isinstance(value, torch.Tensor) and value.dim() > 0
    ]


def _is_elsewhere(state: dict[str, object], parameter: Parameter) -> bool:
    device = parameter.device
    return any(getattr(value, "device", device) != device for value in state.values())


def _compare(watch: Watch, optimizer: Optimizer, group: dict[str, object], parameter: Parameter, number: int) -> None:
    import torch

    others = {"grad": parameter.grad, **optimizer.state.get(parameter, {})}
    for name, value in others.items():
        if type(value) is not torch.Tensor or value.shape != parameter.shape or name == "step":
            continue
        is_fused = bool(group.get("fused")) and parameter.device.type == "cpu"
        if is_fused and _real_strides(value) != _real_strides(parameter):
            text = f"the fused step pairs a parameter's elements with others of its {name}: their strides differ"
            numbers = {"parameter": list(parameter.stride()), name: list(value.stride())}
            watch.report("state_strides", text, step=number, names=[name], numbers=numbers)
        is_torchs = type(optimizer).__module__.startswith("torch.optim") and value.dim() > 0
        if is_torchs and name != "grad" and value.device != parameter.device:
            text = f"the optimizer's {name} is on {value.device}, its parameter on {parameter.device}"
            watch.report("state_device", text, step=number, names=[name])
    step = others.get("step")
    if group.get("fused") and isinstance(step, torch.Tensor) and step.device != parameter.device:
        text = f"the step counter of this fused optimizer is on {step.device}, its parameter on {parameter.device}"
        # Else the whole state is elsewhere, which `state_device` reports.
        if all(
            value.device == parameter.device for value in others.values() if value is not step and _is_tensor(value)
        ):
            watch.report("state_step_device", text, step=number, names=["step"])


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _real_strides(tensor: Tensor) -> list[int]:
    """Return the strides of the dimensions that have more than one element; the others do not matter."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape) if size > 1]
