"""Larger batches in the loaders of a program, so that one rank has the rows of several."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from repros.simulated_gpus.import_hooks import when_imported


def enlarge_batches(factor: int) -> None:
    """Multiply the batch size of each loader that the program makes.

    Only BatchSampler is changed: every loader that forms batches has one, and libraries that make a loader anew copy
    the loader's own batch size, which stays as it is.
    """

    def patch(module: ModuleType) -> None:
        original = module.BatchSampler.__init__

        @functools.wraps(original)
        def init(self: Any, sampler: Any, batch_size: int, *args: Any, **kwargs: Any) -> None:
            original(self, sampler, batch_size * factor, *args, **kwargs)

        module.BatchSampler.__init__ = init

    when_imported("torch.utils.data.sampler", patch)
