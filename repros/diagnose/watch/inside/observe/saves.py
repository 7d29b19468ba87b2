"""Observations of saving and loading weights.

`submitted(arguments)` and `saving(object)`: what is given to a thread, and what `torch.save` writes;
`state_taken(module, state)` and `state_loading(module, state)`: a module's `state_dict` and `load_state_dict`.
"""

from __future__ import annotations

from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe saving once torch and concurrent.futures are imported."""

    def submitted(args: Args, kwargs: Kwargs) -> None:
        watch.notify("submitted", [*args[2:], *kwargs.values()])

    def saving(args: Args, kwargs: Kwargs) -> None:
        watch.notify("saving", kwargs.get("obj", args[0] if args else None))

    def patch(module: ModuleType) -> None:
        around(module.ThreadPoolExecutor, "submit", before=submitted)

    when_imported("concurrent.futures.thread", patch)

    def taken(args: Args, kwargs: Kwargs, result: object) -> None:
        if len(args) == 1 and kwargs.get("destination") is None:  # not a part of another's
            watch.notify("state_taken", args[0], result)

    def loading(args: Args, kwargs: Kwargs) -> None:
        watch.notify("state_loading", args[0], kwargs.get("state_dict", args[1] if len(args) > 1 else None))

    def patch_module(module: ModuleType) -> None:
        around(module.Module, "state_dict", returned=taken)
        around(module.Module, "load_state_dict", before=loading)

    when_imported("torch", lambda module: around(module, "save", before=saving))
    when_imported("torch.nn.modules.module", patch_module)
