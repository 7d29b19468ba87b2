"""The reference of a preference training is the model that the training begins with (TRL).

## What it does
Reports `reference_without_adapter` (possible) when TRL's DPOTrainer begins to train an adapter that was loaded, and its
reference is the model without this adapter: it has no reference model, or one with the same base weights.

## Why is this bad?
The loss measures the distance from the base model, and not from the model that was fine-tuned before.

## Example
`DPOTrainer(model=PeftModel.from_pretrained(base, sft_path, is_trainable=True))` without `ref_model` or
`ref_adapter_name`.

## Known misses
Adapters that begin anew; reference adapters; trainings that resume from a checkpoint or have no reference at all;
trainers that are not derived from TRL's.

## Cost
Nothing in a step, except for the first of each trainer.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.adapters import adapted_layers, adapter_parameters
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from peft import PeftModel
    from peft.tuners.tuners_utils import BaseTuner
    from torch import Tensor
    from torch.nn import Module, Parameter
    from trl import DPOTrainer

CHECKS = (
    Check("reference_without_adapter", "the reference of a preference training lacks the adapter it begins with"),
)

_MOST_LAYERS = 3


class _Referred:
    """The trainers of this process, and the adapters that were loaded."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._loaded: dict[int, weakref.ref[Parameter]] = {}
        self._seen: weakref.WeakSet[DPOTrainer] = weakref.WeakSet()

    def adapter_filled(self, model: PeftModel, name: str, state: Mapping[str, Tensor], result: object) -> None:
        if len(getattr(result, "unexpected_keys", ())) < len(state):
            parameters = (parameter for key, parameter in model.named_parameters() if f".{name}" in key)
            self._loaded.update((id(parameter), weakref.ref(parameter)) for parameter in parameters)
            self._watch.listen("training_on", self.training_on)

    def training_on(self, trainer: DPOTrainer, _: object) -> None:
        if trainer in self._seen:
            return
        self._seen.add(trainer)
        is_its = any(kind.__name__ == "DPOTrainer" for kind in type(trainer).__mro__)
        model = getattr(trainer, "model", None)
        tuner = getattr(model, "base_model", None)
        is_new = getattr(getattr(trainer, "state", None), "global_step", 1) == 0
        if not is_its or not is_new or not hasattr(model, "peft_config") or not hasattr(tuner, "model"):
            return
        if getattr(trainer.args, "reference_free", False) or _has_reference_adapter(trainer, model):
            return
        trained = [one for layer in adapted_layers(tuner) for one in adapter_parameters(layer) if one.requires_grad]
        loaded = sum(self._loaded.get(id(one), lambda: None)() is one for one in trained)
        reference = getattr(trainer, "ref_model", None)
        if loaded and all(bool(one.detach().any()) for one in trained) and _is_base(reference, tuner):
            text = (
                f"possible: this training begins with a loaded adapter ({loaded} weights), and its reference is"
                f" {'the base model without it' if reference is None else 'a model without it'}"
            )
            self._watch.report("reference_without_adapter", text, step=1, numbers={"weights": loaded})


def listen(watch: Watch) -> None:
    """Attach the check."""
    watch.listen("adapter_filled", _Referred(watch).adapter_filled)


def _has_reference_adapter(trainer: DPOTrainer, model: PeftModel) -> bool:
    """Return whether the reference is an adapter: given by name, or the trainer's own copy (TRL 0.29)."""
    given = getattr(trainer, "ref_adapter_name", None) or getattr(trainer.args, "ref_adapter_name", None)
    return bool(given) or (getattr(trainer, "ref_model", None) is None and "ref" in model.peft_config)


def _is_base(reference: Module | None, tuner: BaseTuner) -> bool:
    """Return whether a reference is the base model: none was given, or the adapted layers have its weights."""
    if reference is None:
        return True
    reference = getattr(reference, "module", reference)
    if next(adapted_layers(reference), None) is not None:
        return False
    others, adapted = dict(reference.named_modules()), {id(layer) for layer in adapted_layers(tuner)}
    layers = [(name, layer) for name, layer in tuner.model.named_modules() if id(layer) in adapted]
    pairs = [(layer.get_base_layer(), others.get(name)) for name, layer in layers[:_MOST_LAYERS]]
    weights = [(getattr(one, "weight", None), getattr(other, "weight", None)) for one, other in pairs]
    equal = sys.modules["torch"].equal
    return bool(weights) and all(
        one is not None and other is not None and one.shape == other.shape and equal(one.detach(), other.detach())
        for one, other in weights
    )
