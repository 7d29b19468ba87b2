"""`pass_begins(data set)`, `drawn(pass)`, `fetched(pass)`, `epoch_set(sampler)`: what data loaders draw, pass by pass.

`streamed(iterator, number, workers, batch)`: the first two batches of each worker that reads an IterableDataset.

`_BaseDataLoaderIter` is patched where it draws indices and hands out batches, both once for each batch.
"""

from __future__ import annotations

import weakref
from typing import Any

from repros.inside.import_hooks import when_imported
from repros.watch.inside.observe.patch import around
from repros.watch.inside.watch import Watch


class Pass:
    """One pass over a loader: from the first index that is drawn on."""

    def __init__(self, iterator: Any) -> None:
        """Begin before anything is drawn."""
        self.samplers = list(_samplers(getattr(iterator, "_index_sampler", None)))
        self.epochs: dict[int, int] = {}
        """The epoch of each sampler, by its place, when the first index was drawn."""
        self.fetched = 0


def _samplers(outermost: Any) -> Any:
    """Yield the samplers with an epoch, however they are wrapped in one another."""
    waiting = [outermost]
    seen: set[int] = set()
    while waiting and len(seen) < 10:  # noqa: PLR2004 - deeper than any wrapping
        sampler = waiting.pop()
        if sampler is None or id(sampler) in seen:
            continue
        seen.add(id(sampler))
        fields = getattr(sampler, "__dict__", {})
        if callable(getattr(sampler, "set_epoch", None)) and isinstance(getattr(sampler, "epoch", None), int):
            yield sampler
        # Lightning's DistributedSamplerWrapper keeps the wrapped sampler as its data set.
        waiting += [fields[name] for name in ("sampler", "batch_sampler", "_sampler", "dataset") if name in fields]


def _tell_streamed(watch: Watch, iterator: Any, current: Pass | None, batch: Any) -> None:
    workers = getattr(iterator, "_num_workers", 0)
    if workers <= 1 or current is None or current.fetched > 2 * workers:
        return
    import torch

    if isinstance(getattr(iterator, "_dataset", None), torch.utils.data.IterableDataset):
        watch.tell("streamed", iterator, current.fetched - 1, workers, batch)


def _tell_beginning(watch: Watch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    loader = kwargs.get("loader", args[1] if len(args) > 1 else None)
    watch.tell("pass_begins", getattr(loader, "dataset", None))


def _patch_sampler(watch: Watch, module: Any) -> None:
    around(module.DistributedSampler, "set_epoch", after=lambda args, *_: watch.tell("epoch_set", args[0]))


def attach(watch: Watch) -> None:
    """Observe loaders once torch.utils.data is imported."""
    passes: weakref.WeakKeyDictionary[Any, Pass] = weakref.WeakKeyDictionary()

    def draw(args: tuple[Any, ...], *_: Any) -> None:
        if args[0] not in passes:
            passes[args[0]] = Pass(args[0])
        current = passes[args[0]]
        if current.samplers and not current.epochs:
            current.epochs = {place: sampler.epoch for place, sampler in enumerate(current.samplers)}
            watch.tell("drawn", current)

    def reset(args: tuple[Any, ...], *_: Any) -> None:
        passes.pop(args[0], None)

    def fetch(args: tuple[Any, ...], *_: Any) -> None:
        current = passes.get(args[0])
        if current is not None:
            current.fetched += 1
            if current.samplers:
                watch.tell("fetched", current)

    def hand_out(args: tuple[Any, ...], _: Any, batch: Any) -> None:
        _tell_streamed(watch, args[0], passes.get(args[0]), batch)

    def patch(module: Any) -> None:
        around(module._BaseDataLoaderIter, "__init__", before=lambda *call: _tell_beginning(watch, *call))
        around(module._BaseDataLoaderIter, "_reset", before=reset)
        # Afterwards, since a sampler's own iterator is made with the first index.
        around(module._BaseDataLoaderIter, "_next_index", after=draw)
        around(module._BaseDataLoaderIter, "__next__", after=fetch, returned=hand_out)

    when_imported("torch.utils.data.dataloader", patch)
    when_imported("torch.utils.data.distributed", lambda module: _patch_sampler(watch, module))
