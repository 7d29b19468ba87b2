"""Observations of PEFT's adapters.

`adapting(model)` and `adapted(model)`: a PeftModel is made of a model. `adapter_loading(model)` and
`adapter_loaded(model, name)`: around `load_adapter`; `adapter_filled(model, name, state, result)`: a state was loaded;
`adapter_set(model)`; `adapters_saved(model, folder, names)`. `adapted_fed(tuner, arguments)` and `adapted_gave(tuner)`:
a forward of the model with the adapters, and its end. `merging(tuner)` and `merged(tuner)`. `kbit_prepared(model)`:
`prepare_model_for_kbit_training` has frozen all parameters of a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
    from torch.nn import Module, Parameter

_MERGES = ("merge_adapter", "_unload_and_optionally_merge")


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
    when_imported("peft.tuners.tuners_utils", lambda module: _patch_tuner(watch, module.BaseTuner))
    when_imported("peft.tuners.lora.model", lambda module: _patch_lora(watch, module.LoraModel))
    when_imported("peft.utils.other", lambda module: _patch_preparation(watch, module))
    when_imported("peft.utils.save_and_load", lambda module: _patch_loading(watch, module))


def _patch_model(watch: Watch, kind: type) -> None:
    def saved(args: Args, kwargs: Kwargs, _: object) -> None:
        if kwargs.get("is_main_process", True):
            folder = kwargs.get("save_directory", args[1] if len(args) > 1 else None)
            names = kwargs.get("selected_adapters") or list(args[0].peft_config)
            watch.notify("adapters_saved", args[0], folder, names)

    def adapting(args: Args, kwargs: Kwargs) -> None:
        watch.notify("adapting", kwargs.get("model", args[1] if len(args) > 1 else None))

    def loaded(args: Args, kwargs: Kwargs, _: object) -> None:
        name = kwargs.get("adapter_name", args[2] if len(args) > 2 else None)  # noqa: PLR2004
        watch.notify("adapter_loaded", args[0], name)

    around(kind, "__init__", before=adapting, after=lambda args, *_: watch.notify("adapted", args[0]))
    around(kind, "load_adapter", before=lambda args, _: watch.notify("adapter_loading", args[0]), after=loaded)
    around(kind, "set_adapter", after=lambda args, *_: watch.notify("adapter_set", args[0]))
    around(kind, "save_pretrained", after=saved)
    # Without a task it calls the innermost model itself; the classes of tasks call the tuner.
    _patch_forward(watch, kind, lambda model: model.base_model)


def _patch_tuner(watch: Watch, kind: type) -> None:
    _patch_forward(watch, kind, lambda tuner: tuner)
    _patch_lora(watch, kind)


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


def _patch_lora(watch: Watch, kind: type) -> None:
    """Observe what is a method of all tuners or, in older releases, of each."""
    for name in _MERGES:
        if name in vars(kind):
            around(
                kind,
                name,
                before=lambda args, kwargs: watch.notify("merging", args[0]) if kwargs.get("merge", True) else None,
                after=lambda args, kwargs, _: watch.notify("merged", args[0]) if kwargs.get("merge", True) else None,
            )
    if "set_adapter" in vars(kind):
        around(kind, "set_adapter", after=lambda args, *_: watch.notify("adapter_set", args[0]))


def _patch_preparation(watch: Watch, module: ModuleType) -> None:
    def prepared(args: Args, kwargs: Kwargs, _: object) -> None:
        watch.notify("kbit_prepared", kwargs.get("model", args[0] if args else None))

    around(module, "prepare_model_for_kbit_training", after=prepared)


def _patch_loading(watch: Watch, module: ModuleType) -> None:
    def filled(args: Args, kwargs: Kwargs, result: object) -> None:
        names = ("model", "peft_model_state_dict", "adapter_name")
        given = {**dict(zip(names, args)), **kwargs}
        watch.notify("adapter_filled", given["model"], given.get("adapter_name", "default"), given[names[1]], result)

    around(module, "set_peft_model_state_dict", returned=filled)
