"""An adapter of PEFT that is to be trained gets gradients, and an optimizer holds it.

## What it does
`adapter_frozen`: reports a backward through a model in train mode whose adapter is active and in which nothing requires
gradients, if it ran only because `enable_input_require_grads` makes the embedding's output require them, and reached no
other parameter; `adapter_frozen_by_preparation` if `prepare_model_for_kbit_training` was given this model with its
adapter. `adapter_checkpointed`: reports a backward that gives gradients to a part of such a model and none to its
trained adapter, whose layers all ran without gradients inside of checkpoints. `adapter_bypassed`: reports a backward
that gives gradients to another part and none to the adapter of an attention's `out_proj`, which `nn.MultiheadAttention`
does not call. `adapter_not_in_optimizer`: reports, after an optimizer's step, that no parameter of the model that it
holds requires gradients any more, while the active adapter has gradients and no optimizer holds it.

## Why is this bad?
The adapter keeps its initial weights, of which the effect is zero: the model is the base model.

## Example
`prepare_model_for_kbit_training(get_peft_model(model, config))`, in the wrong order.

## Known misses
Eval mode; disabled adapters; trainings of another part that the optimizer holds. Layers that a pass does not call, as
an expert. Inputs that require gradients themselves. Sharded models, whose parameters an optimizer does not hold
themselves. Programs that compile.

## Cost
One look at the first four forwards of a model in train mode with gradients and the backward after each, at the layers
that these call, and, after an optimizer's first steps and the inspected ones, at what it holds.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.adapters import adapted_layers, adapter_parameters, is_training
from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("adapter_frozen", "a model is trained with an adapter in which nothing requires gradients"),
    Check("adapter_frozen_by_preparation", "the preparation for k-bit training froze the adapter, too"),
    Check(
        "adapter_checkpointed",
        "checkpoints without an input that requires gradients leave an adapter without gradients",
    ),
    Check("adapter_bypassed", "an attention reads the weight of its projection and never calls the adapter on it"),
    Check("adapter_not_in_optimizer", "the active adapter has gradients, and no optimizer holds it"),
)

_PASSES = 4
"""The number of inspected forwards of each model."""
_MOST_NODES = 20000
_HOOK = "make_inputs_require_grad"


class _Pass:
    """One forward of a model with an adapter, in train mode and with gradients."""

    def __init__(self, tuner: BaseTuner) -> None:
        self.tuner = weakref.ref(tuner)
        self.layers = {id(layer): layer for layer in adapted_layers(tuner)}
        self.called: dict[int, bool] = {}
        """Whether gradients were enabled in a call, by the module's `id`."""
        attention = sys.modules["torch"].nn.MultiheadAttention
        self.attentions = {id(part): part for part in tuner.modules() if isinstance(part, attention)}
        self.is_over = False

    def calling(self, module: Module) -> None:
        if id(module) in self.layers or id(module) in self.attentions:
            is_on = sys.modules["torch"].is_grad_enabled()
            self.called[id(module)] = is_on or self.called.get(id(module), False)


class _FirstPasses:
    """The first passes of each model with an adapter, until their backward."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._counts: weakref.WeakKeyDictionary[BaseTuner, int] = weakref.WeakKeyDictionary()
        self._passes: list[_Pass] = []
        self._frozen: list[BaseTuner] = []
        self._prepared: weakref.WeakSet[BaseTuner] = weakref.WeakSet()

    def kbit_prepared(self, model: Module) -> None:
        kind = sys.modules["peft.tuners.tuners_utils"].BaseTuner
        self._prepared.update(part for part in model.modules() if isinstance(part, kind))

    def adapted_fed(self, tuner: BaseTuner, arguments: Mapping[str, object]) -> None:
        if self._watch.compiles or not is_training(tuner):
            return
        count = self._counts[tuner] = self._counts.get(tuner, 0) + 1
        if count > _PASSES or arguments.get("inputs_embeds") is not None:
            return
        made = _Pass(tuner)
        if made.layers and not any(getattr(layer, "disable_adapters", False) for layer in made.layers.values()):
            self._passes = [*self._passes[-3:], made]
            self._watch.listen_to(self, "calling", "adapted_gave", "differentiating", "after_backward")

    def calling(self, module: Module) -> None:
        for one in self._passes:
            if not one.is_over:
                one.calling(module)

    def adapted_gave(self, tuner: BaseTuner) -> None:
        for one in self._passes:
            one.is_over = one.is_over or one.tuner() is tuner
        if all(one.is_over for one in self._passes):
            self._watch.ignore("calling", self.calling)

    def differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        for one in self._passes:
            tuner = one.tuner()
            if tuner is None or not one.is_over or any(part.requires_grad for part in tuner.parameters()):
                continue
            if _makes_inputs_require_gradients(tuner) and _reaches_no_parameter(tensors):
                self._frozen.append(tuner)

    def after_backward(self) -> None:
        passes, self._passes = [one for one in self._passes if one.is_over], []
        frozen, self._frozen = self._frozen, []
        self._watch.ignore_from(self, "calling", "adapted_gave", "differentiating", "after_backward")
        for tuner in frozen:
            count = sum(1 for layer in adapted_layers(tuner) for _ in adapter_parameters(layer))
            text = (
                f"a backward went through this model, and none of the {count} parameters of its adapter requires"
                " gradients: only the embedding's output does, and nothing is trained"
            )
            if tuner in self._prepared:
                text += "; prepare_model_for_kbit_training was called after get_peft_model"
                self._watch.report("adapter_frozen_by_preparation", text, numbers={"parameters": count})
            else:
                self._watch.report("adapter_frozen", text, numbers={"parameters": count})
        for one in passes:
            tuner = one.tuner()
            if tuner is not None and any(part.grad is not None for part in tuner.parameters()):
                self._check_for_checkpoints(one, tuner)
                self._check_for_bypass(one)

    def _check_for_checkpoints(self, one: _Pass, tuner: BaseTuner) -> None:
        called = [layer for key, layer in one.layers.items() if key in one.called]
        if not called or any(one.called[id(layer)] for layer in called):
            return
        parameters = [parameter for layer in called for parameter in _trained(layer)]
        is_checkpointed = bool(getattr(tuner.model, "is_gradient_checkpointing", False))
        if is_checkpointed and parameters and all(parameter.grad is None for parameter in parameters):
            text = (
                f"none of the {len(parameters)} trained parameters of this adapter has a gradient after the backward:"
                " checkpoints give none, since none of their inputs requires gradients"
            )
            self._watch.report("adapter_checkpointed", text, numbers={"parameters": len(parameters)})

    def _check_for_bypass(self, one: _Pass) -> None:
        for key, attention in one.attentions.items():
            layer = attention._modules.get("out_proj")
            if id(layer) not in one.layers or key not in one.called or id(layer) in one.called:
                continue
            parameters = list(_trained(layer))
            if parameters and all(parameter.grad is None for parameter in parameters):
                text = (
                    "the adapter on out_proj of this MultiheadAttention was not called, and none of its"
                    f" {len(parameters)} parameters has a gradient: the attention reads the weight of out_proj alone"
                )
                self._watch.report("adapter_bypassed", text, numbers={"parameters": len(parameters)})


class _Held:
    """The parameters of models with adapters that optimizers hold."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._tuners: weakref.WeakSet[BaseTuner] = weakref.WeakSet()
        self._made: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def made(self, optimizer: Optimizer) -> None:
        self._made.add(optimizer)

    def adapted_fed(self, tuner: BaseTuner, _: object) -> None:
        if tuner not in self._tuners:
            self._tuners.add(tuner)
            self._watch.listen("after_inspected_step", self.after_inspected_step)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        for tuner in list(self._tuners):
            own = {id(parameter) for parameter in tuner.parameters()}
            held = [parameter for parameter in parameters_of(optimizer) if id(parameter) in own]
            if not held or any(parameter.requires_grad for parameter in held):
                continue
            layers = list(adapted_layers(tuner))
            waiting = [one for layer in layers for one in _trained(layer) if one.grad is not None]
            others = {id(one) for other in {*self._made, *steps} for one in parameters_of(other)}
            if waiting and not any(id(one) in others for one in waiting):
                names = sorted({name for layer in layers for name in _active(layer)})
                text = (
                    f"this {type(optimizer).__name__} holds {len(held)} parameters of a model, and none requires"
                    f" gradients any more; {len(waiting)} of the adapter {', '.join(names)} have gradients, and no"
                    " optimizer holds them"
                )
                numbers = {"held": len(held), "waiting": len(waiting)}
                self._watch.report("adapter_not_in_optimizer", text, step=number, names=names, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    trained, held = _FirstPasses(watch), _Held(watch)
    watch.listen_to(trained, "kbit_prepared", "adapted_fed")
    watch.listen_to(held, "adapted_fed", "made")


def _active(layer: BaseTunerLayer) -> list[str]:
    names = layer.active_adapters
    return [names] if isinstance(names, str) else list(names)


def _trained(layer: BaseTunerLayer) -> Iterator[Parameter]:
    return (parameter for parameter in adapter_parameters(layer) if parameter.requires_grad)


def _makes_inputs_require_gradients(tuner: BaseTuner) -> bool:
    """Return whether a hook of `enable_input_require_grads`, or of a k-bit preparation, is registered."""
    hooks = (hook for part in tuner.modules() for hook in part._forward_hooks.values())
    return any(getattr(hook, "__name__", "").startswith(_HOOK) for hook in hooks)


def _reaches_no_parameter(tensors: Tensor | Sequence[Tensor]) -> bool:
    """Return whether the graph of a backward has leaves, none of them a parameter."""
    roots = [tensors] if hasattr(tensors, "grad_fn") else list(tensors or ())
    waiting = [root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None]
    visited = set(waiting)
    parameter, has_leaf = sys.modules["torch"].nn.Parameter, False
    while waiting:
        node = waiting.pop()
        leaf = getattr(node, "variable", None)
        has_leaf = has_leaf or leaf is not None
        new = {following for following, _ in node.next_functions if following is not None} - visited
        if isinstance(leaf, parameter) or len(visited) > _MOST_NODES:
            return False
        visited |= new
        waiting.extend(new)
    return has_leaf
