"""Schedulers and scalers: `scheduled`, `schedule_loaded`, `scaler_loaded`, `scaling`, `scale_asked` and `scaler_steps`.

`step` of a scheduler is not patched: its warnings name the line that calls it.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""
    when_imported("torch.optim.lr_scheduler", lambda module: _patch_schedulers(watch, module))
    # torch.amp's since 2.3; before, torch.cuda.amp's, which is a subclass of it since.
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        when_imported(name, lambda module: _patch_scaler(watch, module.GradScaler))


def _patch_schedulers(watch: Watch, module: ModuleType) -> None:
    def loaded(args: Args, kwargs: Kwargs, _: object) -> None:
        watch.notify("schedule_loaded", args[0], *args[1:2], *kwargs.values())

    around(module.LRScheduler, "__init__", after=lambda args, *_: watch.notify("scheduled", args[0]))
    for kind in list(vars(module).values()):
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and "load_state_dict" in vars(kind):
            around(kind, "load_state_dict", after=loaded)


def _patch_scaler(watch: Watch, kind: Any) -> None:
    def steps(args: Args, kwargs: Kwargs) -> None:
        watch.notify("scaler_steps", args[0], args[1] if len(args) > 1 else kwargs.get("optimizer"))

    if "step" in vars(kind):
        around(kind, "step", before=steps)
        around(kind, "scale", before=lambda args, _: watch.notify("scaling", args[0]))
        for name in ("unscale_", "get_scale"):
            around(kind, name, before=lambda *_: watch.notify("scale_asked"))
        around(kind, "load_state_dict", after=lambda args, *_: watch.notify("scaler_loaded", args[0]))
