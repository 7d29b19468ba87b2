"""Observations of PEFT's adapters: `adapters_saved(model, folder, names)`, and forwards of models with adapters.

`adapted_fed(tuner, arguments)` and `adapted_gave(tuner)`: a forward of the model with the adapters, and its end.
:mod:`.calls` has the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.calls import argument
from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
    from torch.nn import Module, Parameter


def adapted_layers(tuner: Module) -> Iterator[BaseTunerLayer]:
    """Yield the layers of a model that have an adapter."""
    kind = sys.modules["peft.tuners.tuners_utils"].BaseTunerLayer
    return (part for part in tuner.modules() if isinstance(part, kind))


def is_training(tuner: BaseTuner) -> bool:
    """Return whether a call of a model now is one of a training."""
    return bool(tuner.training and sys.modules["torch"].is_grad_enabled())


def adapter_parameters(layer: BaseTunerLayer) -> Iterator[Parameter]:
    """Yield the parameters of a layer's adapters, without those of the layer below them."""
    for name in layer.adapter_layer_names:
        part: object = getattr(layer, name, None)
        if hasattr(part, "parameters"):
            yield from part.parameters()


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""
    when_imported("peft.peft_model", lambda module: _patch_model(watch, module.PeftModel))
    when_imported("peft.tuners.tuners_utils", lambda module: _patch_forward(watch, module.BaseTuner, lambda own: own))


def _patch_model(watch: Watch, kind: type) -> None:
    def saved(args: Args, kwargs: Kwargs, _: object) -> None:
        if kwargs.get("is_main_process", True):
            names = kwargs.get("selected_adapters") or list(args[0].peft_config)
            watch.notify("adapters_saved", args[0], argument(args, kwargs, 1, "save_directory"), names)

    around(kind, "save_pretrained", after=saved)
    # Without a task it calls the innermost model itself; the classes of tasks call the tuner.
    _patch_forward(watch, kind, lambda model: model.base_model)


def _patch_forward(watch: Watch, kind: type, tuner_of: Callable[[Any], Any]) -> None:
    def notify(observation: str, called: Module, *facts: object) -> None:
        tuner = tuner_of(called)
        tuners = sys.modules.get("peft.tuners.tuners_utils")
        if tuners is not None and isinstance(tuner, tuners.BaseTuner):  # not for prompts, which have no layers
            watch.notify(observation, tuner, *facts)

    around(
        kind,
        "forward",
        before=lambda args, kwargs: notify("adapted_fed", args[0], kwargs),
        after=lambda args, *_: notify("adapted_gave", args[0]),
    )
