"""Writes an event `recorded` for each optimizer step of this process, and for each backward before the first step.

A step's event has its number, the optimizer's number, for each group of parameters the options (learning rate and
others) and the names, the passes before it (`calls.Pass`), and by parameter's name the summaries of the optimizer's
state and the parameters before, of the gradients that it used, of those before a clipping (`unclipped`), and of the
parameters and all modules' buffers after it.
`kind` is `step` or `backward`: in a program without a step, each backward counts as one. An event of the kind
`evaluation` has the passes that were not trained on since the previous event, with the parameters and buffers of their
modules at the first of them; `results` has the results that :mod:`.results` has collected since that event; and `end`,
at the end of the process, the last states of :mod:`.ends`.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repros.diagnose.compare.inside import returned, scores
from repros.diagnose.compare.inside.calls import Calls
from repros.diagnose.compare.inside.ends import Ends
from repros.diagnose.compare.inside.names import Names
from repros.diagnose.compare.inside.request import Request
from repros.diagnose.compare.inside.results import Results
from repros.diagnose.compare.inside.summary import Summary, summarise
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

_HOW = {"foreach", "fused", "capturable", "differentiable", "params", "param_names", "initial_lr"}
"""Options of a group that select an implementation, or that no step uses."""

_PREPARING = {
    "torch.distributed.checkpoint.state_dict": ("", "_init_optim_state"),
    "torch.distributed.optim.named_optimizer": ("_NamedOptimizer", "init_state"),
}
"""By module: the class, if any, and the function that steps with zero gradients and a learning rate of zero."""


class Recorder:
    """Records one process."""

    def __init__(self, watch: Watch, request: Request) -> None:
        self._watch = watch
        self._most = request.steps
        self._names = Names()
        self._calls = Calls(self._names, watch.events.failed, self._evaluating)
        self._ends = Ends(watch, self._describe)
        self._results = Results(lambda: self._is_over(self._number))
        self._evaluated: dict[str, dict[str, Summary]] = {"parameters": {}, "buffers": {}, "logged": {}}
        """The state, before their first call, of modules that were called without gradients since the last event; and
        the values that evaluations of Lightning have logged since then."""
        self._summarised: dict[int, Callable[[], object]] = {}
        """Weak references to the tensors in `_evaluated`, by `id`."""
        self._known: dict[int, dict[int, str]] = {}
        """The names of an optimizer's parameters when it was made, loaded or stepped last; both by `id`."""
        self._optimizers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._number = 0
        self._backwards = 0
        self._step: dict[str, object] | None = None
        self._unclipped: dict[str, Summary | None] = {}
        """The gradients before the first clipping since the last step, by parameter's name."""
        self._seeds = 0 if request.seed is None else -1
        """How often the program has seeded torch, without the request's seed."""
        self._is_compiled = False
        self._is_preparing = False
        """Whether a library makes an optimizer's state by a step of its own."""
        self._is_past = False
        """Whether the program has continued after the last recorded step."""

    def listen(self) -> None:
        """Listen to the observations of this process."""
        for name in ("before_backward", "differentiating", "after_backward", "before_step", "after_step"):
            self._watch.listen(name, getattr(self, f"_{name}"))
        for name in ("compiles", "seeded", "handed", "made", "loaded", "logged", "clipping"):
            self._watch.listen(name, getattr(self, f"_{name}"))
        self._watch.listen("ends", self._finish)
        scores.listen(self._watch, self._scored)
        returned.listen(self._watch, self._results)
        self._ends.listen()
        for name, (owner, function) in _PREPARING.items():
            when_imported(name, functools.partial(self._observe_preparation, owner, function))
        when_imported("torch.nn.modules.module", self._calls.on)

    def _observe_preparation(self, owner: str, function: str, module: ModuleType) -> None:
        """Record no step of a function that makes the missing state of an optimizer."""
        place: Any = getattr(module, owner, None) if owner else module
        prepare = getattr(place, function, None)
        if prepare is None:
            return

        @functools.wraps(prepare)
        def preparing(*args: object, **kwargs: object) -> object:
            before, self._is_preparing = self._is_preparing, True
            try:
                return prepare(*args, **kwargs)
            finally:
                self._is_preparing = before

        setattr(place, function, preparing)

    def _seeded(self, _: object) -> None:
        self._seeds += 1

    def _finish(self) -> None:
        """Write the events after the last step, unless there were more steps than are recorded."""
        if self._is_past or "torch.nn.modules.module" not in sys.modules:
            return
        self._write_between(is_end=True)
        ends = self._ends.as_json()
        if any(ends.values()):
            self._write("end", self._number, ends)

    def _compiles(self) -> None:
        self._is_compiled = True
        self._calls.off()

    def _before_backward(self) -> None:
        self._calls.is_backward = True

    def _handed(self, batch: object) -> None:
        if not self._is_over(self._number):
            self._calls.hand(batch)

    def _scored(self, metric: object, method: str, given: object, returned: object) -> None:
        import torch

        if isinstance(returned, (int, float)):
            returned = torch.tensor(float(returned), device="cpu")
        is_module = isinstance(metric, torch.nn.Module)
        name = self._names.of_module(metric) if is_module else type(metric).__name__
        self._calls.call(f"{name}.{method}", given, returned)

    def _made(self, optimizer: Optimizer) -> None:
        self._name(optimizer)

    def _loaded(self, optimizer: Optimizer, *_: object) -> None:
        self._name(optimizer)

    def _name(self, optimizer: Optimizer) -> dict[str, Parameter]:
        """Return the parameters of an optimizer by name, and remember the names."""
        parameters = self._named(parameters_of(optimizer))
        self._known[id(optimizer)] = {id(parameter): name for name, parameter in parameters.items()}
        return parameters

    def _logged(self, _: object, values: object) -> None:
        import torch

        for metrics in values if isinstance(values, list) else ():  # one for each loader
            for base, value in metrics.items():
                if isinstance(value, (int, float, torch.Tensor)) and not base.endswith(scores.TIMES):
                    tensor = torch.as_tensor(value, device=getattr(value, "device", "cpu"))
                    self._evaluated["logged"][_unused(base, self._evaluated["logged"])] = summarise(tensor)

    def _evaluating(self, module: Module) -> None:
        self._ends.pass_moment()
        for field, tensors in (
            ("parameters", self._named(list(module.parameters()))),
            ("buffers", self._names.buffers(module)),
        ):
            for name, tensor in tensors.items():
                # By identity: two models of a class have parameters of the same names.
                if self._summarised.get(id(tensor), lambda: None)() is not tensor:
                    self._summarised[id(tensor)] = weakref.ref(tensor)
                    self._evaluated[field][_unused(name, self._evaluated[field])] = summarise(tensor)

    def _differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        self._calls.passes[-1].losses += map(summarise, tensors)
        self._calls.reach(tensors)

    def _after_backward(self) -> None:
        self._calls.is_backward = False
        self._calls.end_pass()
        if self._step is not None:
            self._step["has_backward"] = True
        elif self._number == 0 and self._is_over(self._backwards):
            self._is_past = True
        elif self._number == 0:
            self._backwards += 1
            parameters = self._named(self._names.parameters())
            passes = [one.as_json() for one in self._calls.passes if one.losses or one.roots]
            fields = {"groups": [], "gradients": _gradients(parameters), "passes": passes}
            self._write_between()
            self._write("backward", self._backwards, {**fields, "buffers": _summaries(self._names.buffers())})

    def _clipping(self, *_: object) -> None:
        if not self._unclipped and not self._is_over(self._number):
            self._unclipped = _gradients(self._named(self._names.parameters()))

    def _is_over(self, number: int) -> bool:
        return self._most is not None and number >= self._most

    def _before_step(self, optimizer: Optimizer, _: int) -> None:
        self._calls.is_backward = False
        if self._is_preparing:
            return
        if self._is_over(self._number):
            self._is_past = True
            self._calls.off()
            return
        self._ends.pass_moment()
        parameters = self._name(optimizer)
        self._step = {
            **self._describe(optimizer),
            "before": _summaries(parameters),
            "gradients": _gradients(parameters),
            "has_backward": False,
        }

    def _after_step(self, optimizer: Optimizer, _: int) -> None:
        step, self._step = self._step, None
        if step is None:
            return
        parameters = self._named(parameters_of(optimizer))
        if step.pop("has_backward"):  # the step itself has called forward and backward, in a closure
            step["gradients"] = _gradients(parameters)
        unclipped, self._unclipped = self._unclipped, {}
        if unclipped:
            used = _gradients(parameters)
            step["unclipped"] = {name: unclipped.get(name, summary) for name, summary in used.items()}
        step["after"] = _summaries(parameters)
        step["buffers"] = _summaries(self._names.buffers())
        step["passes"] = self._calls.take()
        self._write_between()
        # Numbered as they end a step: one that steps within another's, as ZeroRedundancyOptimizer's, is recorded alone.
        step["optimizer"] = self._optimizers.setdefault(optimizer, len(self._optimizers))
        self._number += 1
        self._write("step", self._number, step)

    def _describe(self, optimizer: Optimizer) -> dict[str, object]:
        """Return the options and the state of an optimizer."""
        names = self._known.get(id(optimizer), {})
        parameters: dict[str, Parameter] = {}
        for place, parameter in enumerate(parameters_of(optimizer)):
            parameters[names.get(id(parameter), f"parameter {place}")] = parameter
        names = {id(parameter): name for name, parameter in parameters.items()}
        return {
            "kind_of_optimizer": type(optimizer).__name__,
            "groups": [_group(group, names) for group in optimizer.param_groups],
            "state": _state(optimizer, parameters),
        }

    def _write_between(self, *, is_end: bool = False) -> None:
        """Write the passes since the last event that were not trained on, and the results of other calls."""
        is_cut, passes = self._calls.is_cut, self._calls.take_untrained(is_end=is_end)
        if passes or self._evaluated["logged"]:
            self._write("evaluation", self._number, {"passes": passes, "cut": is_cut, **self._evaluated})
        self._evaluated = {"parameters": {}, "buffers": {}, "logged": {}}
        self._summarised.clear()
        results = self._results.as_json()
        if results["counts"]:
            self._write("results", self._number, results)

    def _named(self, parameters: list[Parameter]) -> dict[str, Parameter]:
        """Return parameters by name, with a number where several have the same name."""
        named: dict[str, Parameter] = {}
        names = self._names.of_parameters(parameters)
        for place, parameter in enumerate(parameters):
            named[_unused(names[place] or self._names.of_nameless(parameter, place), named)] = parameter
        return named

    def _write(self, kind: str, number: int, fields: dict[str, object]) -> None:
        facts = {"world": _world_size(), "seeded": self._seeds > 0, "compiled": self._is_compiled}
        self._watch.events.write("recorded", kind=kind, number=number, **facts, **fields)


def _unused(name: str, names: Mapping[str, object]) -> str:
    """Return a name, with a number if it is in use."""
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name} ({number})"
    return unused


def _world_size() -> int:
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_world_size())
    except Exception:  # not imported, or being ended
        return 1
    return 1 if distributed is None else int(os.environ.get("WORLD_SIZE", "1") or 1)


def _group(group: dict[str, Any], names: dict[int, str]) -> dict[str, object]:
    options = {name: _plain(value) for name, value in group.items() if name not in _HOW}
    options = {name: value for name, value in options.items() if value is not None}
    return {"options": options, "names": [names[id(parameter)] for parameter in group["params"]]}


def _plain(value: object) -> object:
    """Return a number, a sequence of numbers or a tensor of shape () as plain values; None for anything else."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else None


def _state(optimizer: Optimizer, parameters: dict[str, Parameter]) -> dict[str, Summary]:
    import torch

    state = {}
    for name, parameter in parameters.items():
        for key, value in (optimizer.state.get(parameter) or {}).items():
            if isinstance(value, torch.Tensor):
                state[f"{key} of {name}"] = summarise(value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                state[f"{key} of {name}"] = summarise(torch.tensor(float(value), device="cpu"))
    return state


def _summaries(parameters: dict[str, Tensor]) -> dict[str, Summary]:
    return {name: summarise(parameter) for name, parameter in parameters.items()}


def _gradients(parameters: dict[str, Parameter]) -> dict[str, Summary | None]:
    """Return the summaries of gradients by parameter, None for one without a gradient.

    A parameter without elements represents its gradient: a rank that holds no shard of it under FSDP has none.
    """
    return {
        name: None if parameter.grad is None and parameter.numel() else summarise(_gradient(parameter))
        for name, parameter in parameters.items()
        if parameter.requires_grad
    }


def _gradient(parameter: Parameter) -> Tensor:
    return parameter if parameter.grad is None else parameter.grad
