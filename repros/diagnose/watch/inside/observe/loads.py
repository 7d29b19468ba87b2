"""`state_loaded(module, state, incompatible keys)`: a module has loaded; `initialised(tensor)`: `torch.nn.init`.

The functions of `torch.nn.init` that fill a tensor are patched, which layers call from `reset_parameters`.
"""

from __future__ import annotations

from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

_INITIALISERS = (
    *("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_"),
    *("kaiming_normal_", "orthogonal_", "constant_", "zeros_", "ones_"),
)


def attach(watch: Watch) -> None:
    """Observe loading and initialisation once torch.nn is imported."""

    def loaded(args: Args, kwargs: Kwargs, result: object) -> None:
        watch.notify("state_loaded", args[0], kwargs.get("state_dict", args[1] if len(args) > 1 else None), result)

    def initialising(args: Args, kwargs: Kwargs) -> None:
        watch.notify("initialised", kwargs.get("tensor", args[0] if args else None))

    def patch(module: ModuleType) -> None:
        for name in _INITIALISERS:
            if hasattr(module, name):
                around(module, name, before=initialising)

    when_imported("torch.nn.modules.module", lambda module: around(module.Module, "load_state_dict", returned=loaded))
    when_imported("torch.nn.init", patch)
