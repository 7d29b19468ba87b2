"""Observations of accelerate in addition to those of :mod:`.calls`.

`checkpoint_loaded(accelerator, folder)`: after `load_state`; `skipping(sampler)` and `skipped(sampler)`: a pass begins
that leaves out its first batches, and has come to its end.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.calls import argument
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


def _patch_accelerator(watch: Watch, module: ModuleType) -> None:
    folders: list[str | None] = []

    def loading(args: Args, kwargs: Kwargs) -> None:
        folders[:] = [argument(args, kwargs, 0, "input_dir")]

    def loaded(args: Args, *_: object) -> None:
        watch.notify("checkpoint_loaded", args[0], folders.pop() if folders else None)

    # `load_state` may choose the folder itself, and hands it to this function.
    around(module, "load_accelerator_state", before=loading)
    around(module.Accelerator, "load_state", after=loaded)


def _patch_loaders(watch: Watch, module: ModuleType) -> None:
    original = module.SkipBatchSampler.__iter__

    @functools.wraps(original)
    def observed(sampler: SkipBatchSampler) -> Iterator[object]:
        watch.notify("skipping", sampler)
        yield from original(sampler)
        watch.notify("skipped", sampler)

    module.SkipBatchSampler.__iter__ = observed
