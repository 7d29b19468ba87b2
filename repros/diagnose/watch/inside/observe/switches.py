"""`switching(module, mode)`: `Module.train` is about to switch one module, of many as a rule, to a mode.

A class with a `train` of its own is seen where that calls `Module.train`, as it has to. `eval` calls `train`.
"""

from __future__ import annotations

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe switches once torch.nn is imported."""

    def switching(args: Args, kwargs: Kwargs) -> None:
        watch.notify("switching", args[0], bool(kwargs.get("mode", args[1] if len(args) > 1 else True)))

    when_imported("torch.nn.modules.module", lambda module: around(module.Module, "train", before=switching))
