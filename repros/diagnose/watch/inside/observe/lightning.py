"""Observations of Lightning's Trainer and Fabric, under both package names; and whether accelerate is used.

`fit_begins(trainer)`, `fit_ended(trainer)`, `epoch_ended(trainer, fit loop)`, `rate_found(trainer, rate)`,
`validated(trainer)`, `logged(trainer, values)` (what an evaluation has logged, by name, for each loader),
`scored(callback, trainer)`.
"""

from __future__ import annotations

from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe each module once it is imported."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        when_imported(f"{package}.trainer.trainer", lambda module: _patch_trainer(watch, module))
        when_imported(f"{package}.loops.fit_loop", lambda module: _patch_fit_loop(watch, module))
        when_imported(f"{package}.loops.evaluation_loop", lambda module: _patch_evaluation(watch, module))
        when_imported(f"{package}.tuner.lr_finder", lambda module: _patch_finder(watch, module))
        when_imported(f"{package}.callbacks.model_checkpoint", lambda module: _patch_checkpoint(watch, module))
    for package in ("lightning.fabric", "lightning_fabric"):
        when_imported(f"{package}.wrappers", lambda module: _note(watch, module._FabricModule, "fabric"))
    when_imported("accelerate.accelerator", lambda module: _note(watch, module.Accelerator, "accelerate"))


def _note(watch: Watch, kind: type, name: str) -> None:
    around(kind, "__init__", before=lambda *_: watch.events.wrappers.add(name))


def _patch_trainer(watch: Watch, module: ModuleType) -> None:
    for name in ("fit", "validate", "test", "predict"):
        around(module.Trainer, name, before=lambda *_: watch.events.wrappers.add("trainer"))
    around(
        module.Trainer,
        "fit",
        before=lambda args, _: watch.notify("fit_begins", args[0]),
        after=lambda args, *_: watch.notify("fit_ended", args[0]),
    )


def _patch_fit_loop(watch: Watch, module: ModuleType) -> None:
    around(
        module._FitLoop, "on_advance_end", before=lambda args, _: watch.notify("epoch_ended", args[0].trainer, args[0])
    )


def _patch_evaluation(watch: Watch, module: ModuleType) -> None:
    around(
        module._EvaluationLoop,
        "on_run_end",
        before=lambda args, _: watch.notify("validated", args[0].trainer),
        returned=lambda args, _, logged: watch.notify("logged", args[0].trainer, logged),
    )


def _patch_checkpoint(watch: Watch, module: ModuleType) -> None:
    around(
        module.ModelCheckpoint,
        "_save_topk_checkpoint",
        before=lambda args, _: watch.notify("scored", args[0], args[1]),
    )


def _patch_finder(watch: Watch, module: ModuleType) -> None:
    def rate_found(args: Args, kwargs: Kwargs, memo: object) -> None:
        model = kwargs.get("model", args[1] if len(args) > 1 else None)
        watch.notify("rate_found", args[0] if args else kwargs.get("trainer"), model, kwargs, memo)

    around(module, "_lr_find", after=rate_found)
