"""What a network computes with is trained or frozen, and its optimizer has all trained parameters.

## What it does
`layer_cut_off` (possible): reports, after eight steps of an optimizer, a layer in train mode that it holds and that
never had a gradient, if in each inspected step the next module got its output itself without the graph.
`layers_in_plain_list`: reports, after eight steps, a layer that is called in train mode, has gradients, and is in no
optimizer and in no `parameters()` of the module that calls it, but in a list or dict that is an attribute of that
module. `unfrozen_not_added`: reports parameters that were frozen in an earlier call and have had gradients at two later
inspected steps, if no optimizer holds them and nothing has written to them since.

## Why is this bad?
A part of the network keeps its random weights.

## Example
`self.blocks = [nn.Linear(8, 8) for _ in range(4)]` in the place of an `nn.ModuleList`; `head(backbone(x).detach())`
with a backbone that is to be trained.

## Known misses
Weights that were loaded or that the program writes itself, as an average's. Outputs that pass through a function
between the two modules. Parts that are frozen by `requires_grad` or left out of the optimizer in place. Programs that
compile.

## Cost
In the inspected steps one look at the inputs, outputs and parameters of each module. One search through a module's
attributes for a layer that no optimizer holds.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.observe.patch import Args
from repros.diagnose.watch.inside.values import address_of, is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "layer_cut_off",
        "a layer's output is used without its graph, so the layer is never trained",
        "leave out the `detach()`, `.data`, `.item()` or `no_grad()` between this layer and the loss",
    ),
    Check(
        "layers_in_plain_list",
        "layers are in a list or dict that `parameters()` does not search, and are never trained",
        "keep the layers in `nn.ModuleList` or `nn.ModuleDict`, and make the optimizer after that",
    ),
    Check(
        "unfrozen_not_added",
        "unfrozen parameters are in no optimizer",
        "`optimizer.add_param_group({'params': unfrozen})` after `requires_grad_(True)`",
    ),
)

_STEPS = 8


class _Cut:
    """The layers whose output went into another module without its graph."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._last: tuple[Tensor, list[Module]] | None = None
        """The last output, detached, and the outermost modules that returned it."""
        self._cut: weakref.WeakKeyDictionary[Module, int] = weakref.WeakKeyDictionary()
        """The number of inspected steps in which a module was cut off in each of its calls."""
        self._seen: weakref.WeakKeyDictionary[Module, bool] = weakref.WeakKeyDictionary()
        """The modules that were called in this step, and whether they were cut off."""
        self._loaded: weakref.WeakSet[Module] = weakref.WeakSet()
        self._is_over = False
        self._versions: weakref.WeakKeyDictionary[Module, int] = weakref.WeakKeyDictionary()

    def state_loading(self, module: Module, _: object) -> None:
        self._loaded.update(module.modules())

    def fed(self, module: Module, inputs: Args) -> None:
        torch, last = sys.modules["torch"], self._last
        if last is None or self._is_over or not inputs or not torch.is_grad_enabled() or not module.training:
            return
        taken = inputs[0]
        if type(taken) is torch.Tensor and not taken.requires_grad and address_of(taken) == address_of(last[0]):
            for giver in {giver for outer in last[1] for giver in outer.modules()}:
                if giver is not module and giver in self._seen:
                    self._seen[giver] = True

    def called(self, module: Module, output: Any) -> None:
        torch = sys.modules["torch"]
        is_own = type(output) is torch.Tensor and is_plain(output)
        if self._is_over or not module.training or not is_own or address_of(output) is None:
            self._last = None
            return
        if self._last is None or address_of(self._last[0]) != address_of(output):
            self._last = (output.detach(), [])
        if module._parameters and module not in self._seen and _own(module):
            self._seen[module] = False
        self._last[1].append(module)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        self._last = None
        if number > _STEPS:
            self._is_over = True
            for name, listener in (("fed", self.fed), ("called", self.called)):
                self._watch.ignore(name, listener)
        if not self._seen or not self._watch.is_due(number) or number > _STEPS:
            return
        held = {id(parameter) for parameter in parameters_of(optimizer)}
        for module, is_cut in list(self._seen.items()):
            own = _own(module)
            if not own or not all(id(parameter) in held for parameter in own):
                continue
            version = sum(parameter._version for parameter in own)
            if is_cut and module not in self._loaded and self._versions.setdefault(module, version) == version:
                self._cut[module] = self._cut.get(module, 0) + all(parameter.grad is None for parameter in own)
            del self._seen[module]
        if number == _STEPS:
            self._report(number)

    def _report(self, number: int) -> None:
        inspected = _STEPS.bit_length()  # 1, 2, 4, 8
        cut = [module for module, count in self._cut.items() if count >= inspected]
        self._cut.clear()
        if cut:
            names = sorted({type(module).__name__ for module in cut})
            text = (
                f"possible: {len(cut)} layers that the optimizer holds are never trained: what they compute is used"
                " without its graph (detach, no_grad)"
            )
            self._watch.report("layer_cut_off", text, step=number, names=names, numbers={"layers": len(cut)})


class _Unheld:
    """The trained parameters that are called and that no optimizer holds."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._callers: weakref.WeakKeyDictionary[Module, weakref.ref[Module] | None] = weakref.WeakKeyDictionary()
        """The called modules, each with a reference to its caller, or None."""
        self._stack: list[weakref.ref[Module]] = []
        self._frozen: weakref.WeakKeyDictionary[Module, set[int]] = weakref.WeakKeyDictionary()
        """The parameters of a module that were frozen when it was called, by `id`."""
        self._unfrozen: dict[int, tuple[weakref.ref[Parameter], int, int]] = {}
        """Those with a later gradient: a weak reference, the `_version`, and the number of the step."""
        self._loaded: weakref.WeakSet[Module] = weakref.WeakSet()

    def state_loading(self, module: Module, _: object) -> None:
        self._loaded.update(module.modules())

    def made(self, optimizer: Optimizer) -> None:
        self._optimizers.add(optimizer)

    def calling(self, module: Module) -> None:
        caller = self._stack[-1] if self._stack else None
        self._stack.append(weakref.ref(module))
        if module.training and module not in self._callers:
            self._callers[module] = caller
        for parameter in module._parameters.values():
            if parameter is not None and not parameter.requires_grad:
                self._frozen.setdefault(module, set()).add(id(parameter))

    def called(self, module: Module, _: object) -> None:
        while self._stack and self._stack.pop()() is not module:
            pass

    def after_inspected_step(self, _: object, number: int) -> None:
        self._stack.clear()
        if not self._watch.is_due(number) or (number != _STEPS and not self._frozen):
            return
        held = {id(parameter) for optimizer in list(self._optimizers) for parameter in parameters_of(optimizer)}
        if number == _STEPS:
            self._check_for_lists(held, number)
        self._check_for_unfrozen(held, number)

    def _check_for_lists(self, held: set[int], number: int) -> None:
        for module, reference in list(self._callers.items()):
            caller, its = reference() if reference is not None else None, list(module.parameters())
            if caller is None or not its or module in self._loaded:
                continue
            if any(id(parameter) in held or parameter.grad is None for parameter in its):
                continue
            name = _attribute_of(caller, module)
            if name is not None and any(id(parameter) in held for parameter in caller.parameters()):
                kind = type(module).__name__
                text = f"{type(caller).__name__}.{name} has a {kind} that parameters() does not find: it is not trained"
                self._watch.report("layers_in_plain_list", text, step=number, names=[name])

    def _check_for_unfrozen(self, held: set[int], number: int) -> None:
        for module, frozen in list(self._frozen.items()):
            for parameter in _own(module):
                if id(parameter) not in frozen or id(parameter) in held or parameter.grad is None:
                    continue
                first = self._unfrozen.get(id(parameter))
                is_same = first is not None and first[0]() is parameter
                if first is None or not is_same:
                    self._unfrozen[id(parameter)] = (weakref.ref(parameter), parameter._version, number)
                elif number > first[2] and parameter._version == first[1]:
                    text = f"the parameters of a {type(module).__name__} were unfrozen, and no optimizer holds them"
                    self._watch.report("unfrozen_not_added", text, step=number)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    cut, held = _Cut(watch), _Unheld(watch)
    watch.listen_to(cut, "state_loading", "fed", "called", "after_inspected_step")
    watch.listen_to(held, "made", "state_loading", "calling", "called", "after_inspected_step")


def _parameters(module: Module) -> list[Parameter]:
    return [parameter for parameter in module._parameters.values() if parameter is not None]


def _own(module: Module) -> list[Parameter]:
    """Return the trained parameters of a module itself."""
    return [parameter for parameter in _parameters(module) if parameter.requires_grad]


def _attribute_of(caller: Module, module: Module) -> str | None:
    """Return the attribute of a module that is a list or dict with another module in it."""
    for name, value in vars(caller).items():
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        if not name.startswith("_") and any(item is module for item in items):
            return str(name)
    return None
