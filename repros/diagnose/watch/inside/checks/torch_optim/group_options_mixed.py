"""Each parameter gets what was saved for it from a checkpoint of the optimizer (torch.distributed.checkpoint).

## What it does
`group_options_mixed`: reports, at the first step after a `set_optimizer_state_dict` or `set_state_dict`, that the call
has given a parameter another option than was saved for it, such as its learning rate or weight decay, or has left one
out, since the groups of the optimizer are not those of the saved one. `optimizer_state_lost`: reports the first step
with a gradient of a parameter for which the same call was given a state, and whose state in the optimizer is empty.

## Why is this bad?
The options of one saved group are given to parameters of all that are in one group now; or a parameter begins with no
moments. No error is raised.

## Example
A checkpoint of an optimizer with two groups (with and without weight decay), loaded into one with a single group; or a
load of a flat state (`flatten_optimizer_state_dict=True`) into a new optimizer while the parameters have gradients.

## Known misses
FSDP1, whose parameters have other names. Options that the program sets after the load. Ranks that get their state from
rank 0. Parameters that `Optimizer.load_state_dict` takes by their position.

## Cost
A comparison of the options of each parameter for such a load.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "group_options_mixed",
        "a load gives parameters the options of another group",
        "make the groups as they were when the checkpoint was saved, or set each group's options after the load",
    ),
    Check(
        "optimizer_state_lost",
        "a load leaves out the optimizer's state of a parameter",
        "load with the same parameters trainable as when the checkpoint was saved, after `optimizer.zero_grad()`",
    ),
)

_WRAPPERS = {"module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"}
"""What wrappers put into the names of parameters, and the helpers leave out."""
_FIRST = {"lr": 0, "weight_decay": 1}
"""The options that are named before others, and their order."""
_MISSING = "none"

Options = dict[str, object]


class _Mixed(NamedTuple):
    """An option that a parameter was saved with, and has otherwise after a load."""

    name: str
    group: dict[str, Any]
    option: str
    saved: object
    used: object


class _Load(NamedTuple):
    """What a load has left to judge in an optimizer's first step after it."""

    mixed: list[_Mixed]
    parameters: int
    """The number of all parameters that were loaded."""
    place: str | None


class _Loads:
    """The loads of torch.distributed.checkpoint's helpers."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._options: dict[str, Options] = {}
        """What the present load was given, by parameter: the options of its group."""
        self._states: set[str] = set()
        """The parameters with a state, too."""
        self._loads: weakref.WeakKeyDictionary[Optimizer, _Load] = weakref.WeakKeyDictionary()
        self._lost: list[tuple[weakref.ref[Parameter], str, str | None]] = []
        """Parameters without their state, with the text of the finding and the location of the load."""

    def optimizers_filling(self, _: object, __: object, state: object) -> None:
        given = state if isinstance(state, Mapping) else {}
        self._options, self._states = _options_of(given), _states_of(given)

    def optimizers_filled(self, model: Module, optimizers: list[Optimizer], _: object) -> None:
        options, states = self._options, self._states
        self._options, self._states = {}, set()
        names = {id(parameter): _plain_name(name) for name, parameter in model.named_parameters()}
        for optimizer in optimizers:
            held = [
                (names[id(parameter)], parameter, group)
                for group in optimizer.param_groups
                for parameter in group["params"]
                if names.get(id(parameter)) in options
            ]
            mixed = [_Mixed(name, group, *other) for name, _, group in held for other in _others(options[name], group)]
            self._loads[optimizer] = _Load(mixed, len(held), user_location())
            for name, parameter, _ in held:
                if name in states and not optimizer.state.get(parameter):
                    text = f"{name} is trained without the state that was loaded for it: the load has left it out"
                    self._lost.append((weakref.ref(parameter), text, user_location()))
        self._watch.listen("before_step", self.before_step)

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        load = self._loads.pop(optimizer, None)
        if load is not None:
            self._judge(load, number)
        self._find_lost(optimizer, number)
        if not self._loads and not self._lost:
            self._watch.ignore("before_step", self.before_step)

    def _judge(self, load: _Load, number: int) -> None:
        # What the program has set since the load is meant.
        mixed = [one for one in load.mixed if _number(one.group.get(one.option, _MISSING)) == one.used]
        if not mixed:
            return
        name, _, option, saved, used = min(mixed, key=lambda one: _FIRST.get(one.option, len(_FIRST)))
        count = len({one.name for one in mixed})
        text = (
            f"{count} of {load.parameters} parameters were loaded with options of other groups: {name} was saved with"
            f" {option} {saved}, and has {used}"
        )
        numbers = {"saved": saved, "used": used}
        names = [option]
        self._watch.report("group_options_mixed", text, step=number, numbers=numbers, names=names, place=load.place)

    def _find_lost(self, optimizer: Optimizer, number: int) -> None:
        waiting = []
        for reference, text, place in self._lost:
            parameter = reference()
            if parameter is None or optimizer.state.get(parameter):
                continue
            if parameter.grad is not None and any(one is parameter for one in parameters_of(optimizer)):
                self._watch.report("optimizer_state_lost", text, step=number, place=place)
            else:
                waiting.append((reference, text, place))
        self._lost = waiting


def listen(watch: Watch) -> None:
    """Attach the checks."""
    watch.listen_to(_Loads(watch), "optimizers_filling", "optimizers_filled")


def _plain_name(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _options_of(state: Mapping[str, Any]) -> dict[str, Options]:
    """Return the options of each parameter's group, from a state with groups or from a flat one."""
    found: dict[str, Options] = {}
    groups = state.get("param_groups")
    for group in groups if isinstance(groups, (list, tuple)) else ():
        options = {key: _number(value) for key, value in group.items() if key != "params"}
        found.update({name: options for name in group.get("params", ()) if isinstance(name, str)})
    for name, option, value in _flat(state, "param_groups."):
        found.setdefault(name, {})[option] = _number(value)
    return found


def _states_of(state: Mapping[str, Any]) -> set[str]:
    """Return the names of the parameters that have a state, which is not empty."""
    named = state.get("state")
    whole = {name for name, value in named.items() if value} if isinstance(named, Mapping) else set()
    return whole | {name for name, _, _ in _flat(state, "state.")}


def _flat(state: Mapping[Any, Any], beginning: str) -> Iterator[tuple[str, str, object]]:
    for key, value in state.items():
        if isinstance(key, str) and key.startswith(beginning):
            name, _, last = key[len(beginning) :].rpartition(".")
            yield name, last, value


def _number(value: object) -> object:
    """Return a number in the place of a tensor of one: a learning rate may be one, and the load writes into it."""
    import torch

    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _others(saved: Options, group: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    """Yield each option that a group lacks or has otherwise than it was saved, with both values."""
    for option, value in saved.items():
        present = _number(group.get(option, _MISSING))
        is_comparable = isinstance(value, (bool, int, float)) and isinstance(present, (bool, int, float, str))
        if is_comparable and value != present:
            yield option, value, present
