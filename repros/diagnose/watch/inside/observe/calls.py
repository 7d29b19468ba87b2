"""Observations of calls, as a table: the function or method, when it is observed, and what listeners are given.

An observation of a method passes on the object, one of a function nothing, unless :attr:`ObservedCall.facts` chooses
other values; `result` adds what the call returned. Calls that need more than that have a module of their own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

Facts = Callable[[Args, Kwargs], Any]
"""Returns the values that an observation passes on, as a tuple; None for a call that is not observed."""


def argument(args: Args, kwargs: Kwargs, position: int, name: str, default: object = None) -> Any:
    """Return an argument of a call, by its position or its name."""
    return kwargs.get(name, args[position] if len(args) > position else default)


def _object(args: Args, _: Kwargs) -> Args:
    return args[:1]


def _object_and(position: int, name: str, default: object = None) -> Facts:
    return lambda args, kwargs: (args[0], argument(args, kwargs, position, name, default))


def _only(*places: tuple[int, str]) -> Facts:
    return lambda args, kwargs: tuple(argument(args, kwargs, *place) for place in places)


def _whole(args: Args, kwargs: Kwargs) -> Args:
    return args[0], args[1:], kwargs


class ObservedCall(NamedTuple):
    """A function or method whose calls are observed; one that a release lacks or inherits is not."""

    module: str
    name: str
    """`Class.method`, or the function."""
    before: str = ""
    """The observation that is made before the call."""
    after: str = ""
    """The observation that is made if it returns."""
    facts: Facts = _object
    result: bool = False
    """Whether the observation after it also passes on the result."""
    exported_by: str = ""
    """A module that has the function, too: a watch that begins in a program's code finds it imported."""


def _checkpoint(args: Args, kwargs: Kwargs) -> Any:
    return args[:1] if argument(args, kwargs, 1, "checkpoint") is not None else None


def _merged(args: Args, kwargs: Kwargs) -> Any:
    return args[:1] if kwargs.get("merge", True) else None


def _whole_state(args: Args, kwargs: Kwargs) -> Any:
    return args if len(args) == 1 and kwargs.get("destination") is None else None  # not a part of another's


def _left_out_step(args: Args, _: Kwargs) -> Any:
    return None if args[0].gradient_state.sync_gradients else (args[0].optimizer,)


def _filled_adapter(args: Args, kwargs: Kwargs) -> Any:
    state, name = argument(args, kwargs, 1, "peft_model_state_dict"), argument(args, kwargs, 2, "adapter_name")
    return argument(args, kwargs, 0, "model"), name or "default", state


def _logged(args: Args, kwargs: Kwargs) -> Any:
    on_epoch = 6
    places = (1, "name"), (2, "value"), (on_epoch, "on_epoch")
    return (args[0], *(argument(args, kwargs, *place) for place in places))


def _filled_optimizers(args: Args, kwargs: Kwargs) -> Any:
    optimizers = argument(args, kwargs, 1, "optimizers")
    state = argument(args, kwargs, 2, "optim_state_dict")
    several = list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]
    return argument(args, kwargs, 0, "model"), several, state


def _derived(method: str) -> Facts:
    return lambda args, kwargs: (argument(args, kwargs, 0, "dataset"), method)


_MODULE, _CLIPS, _INIT = "torch.nn.modules.module", "torch.nn.utils.clip_grad", "torch.nn.init"
_SWA, _TRAINER, _TUNERS = "torch.optim.swa_utils", "transformers.trainer", "peft.tuners.tuners_utils"
_STREAMS, _TOKENS = "datasets.iterable_dataset", "transformers.tokenization_utils_base"
_SPLIT = "_split_by_node_iterable_dataset"
_INITIALISERS = (
    *("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_"),
    *("kaiming_normal_", "orthogonal_", "constant_", "zeros_", "ones_"),
)
"""The functions of `torch.nn.init` that fill a tensor; layers call them from `reset_parameters`."""
_DERIVING = (
    *("map", "filter", "shuffle", "with_format", "rename_column", "rename_columns", "remove_columns"),
    *("select_columns", "add_column", "cast", "cast_column", "batch", "take", "skip"),
)
"""Methods of IterableDataset that return another one, over the same rows."""
_ROWS = {
    "train_test_split": "rows_split",
    "shuffle": "rows_shuffled",
    "select": "rows_selected",
    "map": "rows_mapped",
}
_NUMBERING = {
    "transformers.models.gpt2.modeling_gpt2": "GPT2Model",
    "transformers.models.gpt_neo.modeling_gpt_neo": "GPTNeoModel",
}
"""Models with learned positions that ask no attention mask for them, by module: they number positions from 0."""

CALLS = (
    # torch. A class with a `train` of its own is seen where that calls `Module.train`, as it has to; `eval` calls it.
    ObservedCall("torch", "manual_seed", after="seeded", facts=_only((0, "seed")), exported_by="torch.random"),
    ObservedCall("torch", "save", "saving", facts=_only((0, "obj"))),
    ObservedCall(_MODULE, "Module.train", "switching", facts=_object_and(1, "mode", default=True)),
    ObservedCall(_MODULE, "Module.state_dict", after="state_taken", facts=_whole_state, result=True),
    ObservedCall(
        *(_MODULE, "Module.load_state_dict", "state_loading", "state_loaded"),
        facts=_object_and(1, "state_dict"),
        result=True,
    ),
    *(ObservedCall(_INIT, name, "initialised", facts=_only((0, "tensor"))) for name in _INITIALISERS),
    ObservedCall(_CLIPS, "clip_grad_norm_", after="clipped", facts=_only((1, "max_norm")), result=True),
    *(
        ObservedCall(_CLIPS, name, "clipping", facts=_only((0, "parameters"), (1, most)), exported_by="torch.nn.utils")
        for name, most in (("clip_grad_norm_", "max_norm"), ("clip_grad_value_", "clip_value"))
    ),
    ObservedCall(_SWA, "AveragedModel.__init__", after="average_made"),
    ObservedCall(_SWA, "AveragedModel.update_parameters", "average_updated"),
    ObservedCall(_SWA, "AveragedModel.forward", "average_called"),
    # `step` of a scheduler is not observed: its warnings name the line that calls it.
    ObservedCall("torch.optim.lr_scheduler", "LRScheduler.__init__", after="scheduled"),
    # torch.amp's since 2.3; before, torch.cuda.amp's, which is a subclass of it since.
    *(
        call
        for module in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler")
        for call in (
            ObservedCall(module, "GradScaler.step", "scaler_steps", facts=_object_and(1, "optimizer")),
            ObservedCall(module, "GradScaler.scale", "scaling"),
            ObservedCall(module, "GradScaler.unscale_", "scale_asked", facts=_only()),
            ObservedCall(module, "GradScaler.get_scale", "scale_asked", facts=_only()),
            ObservedCall(module, "GradScaler.load_state_dict", after="scaler_loaded"),
        )
    ),
    ObservedCall(
        *("concurrent.futures.thread", "ThreadPoolExecutor.submit", "submitted"),
        facts=lambda args, kwargs: ([*args[2:], *kwargs.values()],),
    ),
    # torch.distributed.checkpoint's helpers, which find parameters by their names.
    *(
        ObservedCall(
            *("torch.distributed.checkpoint.state_dict", name, "optimizers_filling", "optimizers_filled"),
            facts=_filled_optimizers,
        )
        for name in ("set_optimizer_state_dict", "set_state_dict")
    ),
    ObservedCall("safetensors.torch", "save_file", after="tensors_saved", facts=_only((0, "tensors"))),
    # Lightning's Trainer, under both package names. `logged` has the values by name, for each loader.
    *(
        call
        for package in ("lightning.pytorch", "pytorch_lightning")
        for call in (
            ObservedCall(f"{package}.trainer.trainer", "Trainer.fit", "fit_begins", "fit_ended"),
            ObservedCall(
                *(f"{package}.loops.fit_loop", "_FitLoop.on_advance_end", "epoch_ended"),
                facts=lambda args, _: (args[0].trainer, args[0]),
            ),
            ObservedCall(
                *(f"{package}.loops.evaluation_loop", "_EvaluationLoop.on_run_end", "validated", "logged"),
                facts=lambda args, _: (args[0].trainer,),
                result=True,
            ),
            ObservedCall(
                *(f"{package}.callbacks.model_checkpoint", "ModelCheckpoint._save_topk_checkpoint", "scored"),
                facts=lambda args, _: args[:2],
            ),
            ObservedCall(f"{package}.core.module", "LightningModule.log", "logging", facts=_logged),
            ObservedCall(
                *(f"{package}.tuner.lr_finder", "_lr_find", "", "rate_found"),
                facts=lambda args, kwargs: (*_only((0, "trainer"), (1, "model"))(args, kwargs), kwargs),
            ),
        )
    ),
    ObservedCall("torchmetrics.metric", "Metric.forward", "", "metric_called", result=True),
    # accelerate.
    ObservedCall("accelerate.accelerator", "Accelerator.prepare", after="objects_prepared"),
    ObservedCall(
        *("accelerate.accelerator", "Accelerator.prepare_data_loader", "", "prepared_loader"),
        facts=_only(),
        result=True,
    ),
    ObservedCall(
        *("accelerate.accelerator", "Accelerator.gather_for_metrics", "gathered_for_metrics"),
        facts=lambda args, kwargs: (args[1] if len(args) > 1 else next(iter(kwargs.values()), None),),
    ),
    ObservedCall("accelerate.data_loader", "DataLoaderStateMixin.end", "loader_ended"),
    ObservedCall("accelerate.optimizer", "AcceleratedOptimizer.step", "step_waits", facts=_left_out_step),
    ObservedCall("accelerate.scheduler", "AcceleratedScheduler.step", after="schedule_stepped"),
    # transformers. `tokenized`, `templated` and `numbered` have all arguments.
    ObservedCall("transformers.training_args", "TrainingArguments.__post_init__", "arguments_made"),
    ObservedCall(_TRAINER, "Trainer.create_scheduler", "scheduling"),
    ObservedCall(_TRAINER, "Trainer._load_optimizer_and_scheduler", "resuming", "resumed", _checkpoint),
    ObservedCall(_TRAINER, "Trainer.training_step", "training_on", facts=_object_and(2, "inputs")),
    ObservedCall(_TRAINER, "Trainer.evaluation_loop", after="evaluation_looped", result=True),
    ObservedCall(_TRAINER, "Trainer.evaluate", after="evaluated_to", result=True),
    ObservedCall(
        *("transformers.trainer_callback", "EarlyStoppingCallback.on_train_begin", "stopping_begins"),
        facts=_object_and(2, "state"),
    ),
    ObservedCall(
        *("transformers.trainer_callback", "EarlyStoppingCallback.on_evaluate", "stopping_asked"),
        facts=_object_and(1, "args"),
    ),
    ObservedCall(_TOKENS, "PreTrainedTokenizerBase.__call__", "", "tokenized", _whole, result=True),
    ObservedCall(_TOKENS, "PreTrainedTokenizerBase.apply_chat_template", "", "templated", _whole, result=True),
    ObservedCall(
        *("transformers.data.data_collator", "DataCollatorForLanguageModeling.torch_call", "", "collated"),
        facts=lambda args, kwargs: (args[0], args[1] if len(args) > 1 else next(iter(kwargs.values()), None)),
        result=True,
    ),
    *(
        ObservedCall(module, f"{kind}.forward", "numbered", facts=lambda args, kwargs: (args[1:], kwargs))
        for module, kind in _NUMBERING.items()
    ),
    # PEFT. `set_adapter` and merging are methods of all tuners or, in older releases, of each.
    ObservedCall("peft.peft_model", "PeftModel.__init__", "adapting", facts=_only((1, "model"))),
    ObservedCall("peft.peft_model", "PeftModel.__init__", after="adapted"),
    ObservedCall("peft.peft_model", "PeftModel.load_adapter", "adapter_loading"),
    ObservedCall("peft.peft_model", "PeftModel.load_adapter", "", "adapter_loaded", _object_and(2, "adapter_name")),
    ObservedCall("peft.peft_model", "PeftModel.set_adapter", after="adapter_set"),
    *(
        call
        for module, kind in ((_TUNERS, "BaseTuner"), ("peft.tuners.lora.model", "LoraModel"))
        for call in (
            ObservedCall(module, f"{kind}.merge_adapter", "merging", "merged", _merged),
            ObservedCall(module, f"{kind}._unload_and_optionally_merge", "merging", "merged", _merged),
            ObservedCall(module, f"{kind}.set_adapter", after="adapter_set"),
        )
    ),
    ObservedCall(
        *("peft.utils.other", "prepare_model_for_kbit_training", "", "kbit_prepared"), facts=_only((0, "model"))
    ),
    ObservedCall(
        *("peft.utils.save_and_load", "set_peft_model_state_dict", "", "adapter_filled", _filled_adapter), result=True
    ),
    # datasets. `stream_derived` has the parent, the method and the child; those of rows have all arguments.
    *(
        ObservedCall(_STREAMS, f"IterableDataset.{n}", "", "stream_derived", _derived(n), result=True)
        for n in _DERIVING
    ),
    ObservedCall(
        *(_STREAMS, _SPLIT, "", "stream_derived", _derived("split_dataset_by_node")),
        result=True,
        exported_by="datasets.distributed",
    ),
    ObservedCall(_STREAMS, "IterableDataset.set_epoch", "stream_epoch_set", facts=_object_and(1, "epoch")),
    ObservedCall(_STREAMS, "IterableDataset.__iter__", "stream_begins"),
    *(
        ObservedCall("datasets.arrow_dataset", f"Dataset.{method}", "", observation, _whole, result=True)
        for method, observation in _ROWS.items()
    ),
)

_DRIVERS = {
    **{
        (f"{package}.trainer.trainer", f"Trainer.{method}"): "trainer"
        for package in ("lightning.pytorch", "pytorch_lightning")
        for method in ("fit", "validate", "test", "predict")
    },
    ("lightning.fabric.wrappers", "_FabricModule.__init__"): "fabric",
    ("lightning_fabric.wrappers", "_FabricModule.__init__"): "fabric",
    ("accelerate.accelerator", "Accelerator.__init__"): "accelerate",
}
"""The calls by which a library drives a training, and its name among the events' wrappers."""


def attach(watch: Watch) -> None:
    """Observe each call once its module is imported."""
    for call in CALLS:
        when_imported(call.module, functools.partial(_patch, watch, call))
    for (module, name), driver in _DRIVERS.items():
        when_imported(module, functools.partial(_note_driver, watch, name, driver))
    when_imported("torch.optim.lr_scheduler", functools.partial(_patch_schedulers, watch))


def _patch(watch: Watch, call: ObservedCall, module: ModuleType) -> None:
    owner, name = find(module, call.name)
    if owner is None:
        return

    def before(args: Args, kwargs: Kwargs) -> None:
        facts = call.facts(args, kwargs)
        if facts is not None:
            watch.notify(call.before, *facts)

    def returned(args: Args, kwargs: Kwargs, result: object) -> None:
        facts = call.facts(args, kwargs)
        if facts is not None:
            watch.notify(call.after, *facts, *((result,) if call.result else ()))

    around(owner, name, before=before if call.before else None, returned=returned if call.after else None)
    exporting = sys.modules.get(call.exported_by)
    if exporting is not None and hasattr(exporting, name):
        setattr(exporting, name, getattr(owner, name))


def find(module: ModuleType, name: str) -> tuple[Any, str]:
    """Return the class or module that has a method or function of its own, or None, and its name there."""
    kind, _, own = name.rpartition(".")
    owner = getattr(module, kind, None) if kind else module
    return (owner if own in getattr(owner, "__dict__", ()) else None), own


def _note_driver(watch: Watch, name: str, driver: str, module: ModuleType) -> None:
    owner, own = find(module, name)
    if owner is not None:
        around(owner, own, before=lambda *_: watch.events.wrappers.add(driver))


def _patch_schedulers(watch: Watch, module: ModuleType) -> None:
    def loaded(args: Args, kwargs: Kwargs, _: object) -> None:
        watch.notify("schedule_loaded", args[0], *args[1:2], *kwargs.values())

    for kind in list(vars(module).values()):
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and "load_state_dict" in vars(kind):
            around(kind, "load_state_dict", after=loaded)
