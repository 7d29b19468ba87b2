"""`seeded(seed)`: torch's random generator begins anew, by `torch.manual_seed`."""

from __future__ import annotations

from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe seeding once torch is imported."""

    def seeded(args: Args, kwargs: Kwargs, _: object) -> None:
        watch.notify("seeded", kwargs.get("seed", args[0] if args else None))

    def patch(module: ModuleType) -> None:
        around(module, "manual_seed", after=seeded)
        module.random.manual_seed = module.manual_seed

    when_imported("torch", patch)
