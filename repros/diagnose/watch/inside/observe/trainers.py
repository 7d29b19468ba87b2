"""Observations of transformers' Trainer.

`arguments_made(arguments)`: before defaults are filled in; `scheduling(trainer)`: it is about to make its scheduler;
`resuming(trainer)` and `resumed(trainer)`: optimizer and scheduler are loaded from a checkpoint;
`training_on(trainer, inputs)`; `evaluation_looped(trainer, output)` and `evaluated_to(trainer, metrics)`;
`stopping_begins(callback, state)` and `stopping_asked(callback, arguments)`: an EarlyStoppingCallback.
"""

from __future__ import annotations

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, Observer, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""
    when_imported("transformers.trainer", lambda module: _patch_trainer(watch, module.Trainer))
    when_imported("transformers.training_args", lambda module: _patch_arguments(watch, module.TrainingArguments))
    when_imported("transformers.trainer_callback", lambda module: _patch_stopping(watch, module.EarlyStoppingCallback))


def _patch_arguments(watch: Watch, kind: type) -> None:
    around(kind, "__post_init__", before=lambda args, _: watch.notify("arguments_made", args[0]))


def _patch_trainer(watch: Watch, kind: type) -> None:
    def loads(args: Args, kwargs: Kwargs) -> bool:
        return kwargs.get("checkpoint", args[1] if len(args) > 1 else None) is not None

    def resuming(args: Args, kwargs: Kwargs) -> None:
        if loads(args, kwargs):
            watch.notify("resuming", args[0])

    def resumed(args: Args, kwargs: Kwargs, _: object) -> None:
        if loads(args, kwargs):
            watch.notify("resumed", args[0])

    def training(args: Args, kwargs: Kwargs) -> None:
        watch.notify("training_on", args[0], kwargs.get("inputs", args[2] if len(args) > 2 else None))  # noqa: PLR2004

    observers: dict[str, dict[str, Observer]] = {
        "create_scheduler": {"before": lambda args, _: watch.notify("scheduling", args[0])},
        "_load_optimizer_and_scheduler": {"before": resuming, "after": resumed},
        "training_step": {"before": training},
        "evaluation_loop": {"returned": lambda args, _, output: watch.notify("evaluation_looped", args[0], output)},
        "evaluate": {"returned": lambda args, _, metrics: watch.notify("evaluated_to", args[0], metrics)},
    }
    for name, how in observers.items():
        if hasattr(kind, name):
            around(kind, name, **how)


def _patch_stopping(watch: Watch, kind: type) -> None:
    def begins(args: Args, kwargs: Kwargs) -> None:
        watch.notify("stopping_begins", args[0], kwargs.get("state", args[2] if len(args) > 2 else None))  # noqa: PLR2004

    def asked(args: Args, kwargs: Kwargs) -> None:
        watch.notify("stopping_asked", args[0], kwargs.get("args", args[1] if len(args) > 1 else None))

    around(kind, "on_train_begin", before=begins)
    around(kind, "on_evaluate", before=asked)
