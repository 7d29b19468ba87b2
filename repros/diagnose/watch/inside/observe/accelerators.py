"""Observations of accelerate.

`objects_prepared(accelerator)` and `prepared_loader(loader)`: after `prepare`, and for each loader that it returns;
`checkpoint_loaded(accelerator, folder)`: after `load_state`; `skipping(sampler)` and `skipped(sampler)`: a pass begins
that leaves out its first batches, and has come to its end; `loader_ended(loader)`: a pass over a prepared loader is
over; `gathered_for_metrics(data)`; `step_waits(optimizer)`: a prepared optimizer leaves out a step, since gradients are
accumulated; `schedule_stepped(scheduler)`: a prepared one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from accelerate.data_loader import SkipBatchSampler
    from accelerate.state import GradientState


def gradient_state() -> GradientState | None:
    """Return accelerate's `GradientState`; None while there is no Accelerator."""
    module = sys.modules.get("accelerate.state")
    return module.GradientState() if module is not None and module.GradientState._shared_state else None


def count_processes() -> int:
    """Return how many processes accelerate has, 1 while there is no Accelerator."""
    module = sys.modules.get("accelerate.state")
    return int(module.PartialState().num_processes) if module is not None and module.PartialState._shared_state else 1


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""
    when_imported("accelerate.accelerator", functools.partial(_patch_accelerator, watch))
    when_imported("accelerate.data_loader", functools.partial(_patch_loaders, watch))
    when_imported("accelerate.optimizer", functools.partial(_patch_optimizer, watch))
    when_imported("accelerate.scheduler", functools.partial(_patch_scheduler, watch))


def _patch_accelerator(watch: Watch, module: ModuleType) -> None:
    kind = module.Accelerator
    folders: list[str | None] = []

    def loading(args: Args, kwargs: Kwargs) -> None:
        folders[:] = [kwargs.get("input_dir", args[0] if args else None)]

    def loaded(args: Args, *_: object) -> None:
        watch.notify("checkpoint_loaded", args[0], folders.pop() if folders else None)

    def gathered(args: Args, kwargs: Kwargs) -> None:
        watch.notify("gathered_for_metrics", args[1] if len(args) > 1 else next(iter(kwargs.values()), None))

    # `load_state` may choose the folder itself, and hands it to this function.
    around(module, "load_accelerator_state", before=loading)
    around(kind, "load_state", after=loaded)
    around(kind, "prepare", after=lambda args, *_: watch.notify("objects_prepared", args[0]))
    around(kind, "prepare_data_loader", returned=lambda _, __, loader: watch.notify("prepared_loader", loader))
    around(kind, "gather_for_metrics", before=gathered)


def _patch_loaders(watch: Watch, module: ModuleType) -> None:
    around(module.DataLoaderStateMixin, "end", before=lambda args, _: watch.notify("loader_ended", args[0]))
    original = module.SkipBatchSampler.__iter__

    @functools.wraps(original)
    def observed(sampler: SkipBatchSampler) -> Iterator[object]:
        watch.notify("skipping", sampler)
        yield from original(sampler)
        watch.notify("skipped", sampler)

    module.SkipBatchSampler.__iter__ = observed


def _patch_optimizer(watch: Watch, module: ModuleType) -> None:
    def stepping(args: Args, _: object) -> None:
        if not args[0].gradient_state.sync_gradients:
            watch.notify("step_waits", args[0].optimizer)

    around(module.AcceleratedOptimizer, "step", before=stepping)


def _patch_scheduler(watch: Watch, module: ModuleType) -> None:
    around(module.AcceleratedScheduler, "step", after=lambda args, *_: watch.notify("schedule_stepped", args[0]))
