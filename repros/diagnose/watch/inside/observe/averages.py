"""`average_made`, `average_updated`, `average_called`: calls of a `torch.optim.swa_utils.AveragedModel`."""

from __future__ import annotations

from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe averages once torch.optim.swa_utils is imported."""

    def patch(module: ModuleType) -> None:
        kind = module.AveragedModel
        around(kind, "__init__", after=lambda args, *_: watch.notify("average_made", args[0]))
        around(kind, "update_parameters", before=lambda args, _: watch.notify("average_updated", args[0]))
        around(kind, "forward", before=lambda args, _: watch.notify("average_called", args[0]))

    when_imported("torch.optim.swa_utils", patch)
