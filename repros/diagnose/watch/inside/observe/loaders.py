"""What data loaders draw, pass by pass: `pass_begins(data set, workers)`, `drawn(pass)`, `fetched(pass)`.

`epoch_set(sampler)`: the epoch of a DistributedSampler is set.
`handed(batch)`: what it hands out. `ordered(pass)`: the first indices of a pass that draws them at random are known.
`streamed(iterator, number, workers, batch)`: the first two batches of each worker that reads an IterableDataset.
`order_made(sampler)`: a DistributedSampler is about to draw the order of a pass. `position_taken(sampler, state)` and
`position_loaded(sampler, state)`: one that keeps its position in a pass gives a state, or was given one.
`worker_begins()` and `worker_began()`: around the first read of a worker, one of several, in its process.

`_BaseDataLoaderIter` is patched where it draws indices and hands out batches, both once for each batch.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch.utils.data import Sampler
    from torch.utils.data.dataloader import _BaseDataLoaderIter

FIRST = 8
"""Indices by which one random order of a data set is distinguished from another."""


class LoaderPass:
    """One pass over a loader: from the first index that is drawn on."""

    def __init__(self, iterator: _BaseDataLoaderIter) -> None:
        self.chain = list(chain_of(getattr(iterator, "_index_sampler", None)))
        """The sampler and those that it wraps, the outermost first."""
        self.samplers = [sampler for sampler in self.chain if _has_epoch(sampler)]
        self.epochs: dict[int, int] = {}
        """The epoch of each sampler, by its position, when the first index was drawn."""
        self.fetched = 0
        self.is_random = any(map(_is_random, self.chain))
        self.indices: list[int] = []
        """The first indices of a pass that draws them at random."""
        self.dataset = id(getattr(iterator, "_dataset", None))
        self.workers = getattr(iterator, "_num_workers", 0)
        self.seed = getattr(iterator, "_base_seed", None)
        """The seed of its workers, to which each adds its number."""

    def note(self, drawn: int | list[int] | tuple[int, ...]) -> bool:
        """Record the indices of a batch, and return whether this completes the first ones."""
        if len(self.indices) >= FIRST:
            return False
        self.indices += (drawn if isinstance(drawn, (list, tuple)) else [drawn])[:FIRST]
        return len(self.indices) >= FIRST


def _is_random(sampler: Sampler) -> bool:
    data = sys.modules["torch.utils.data"]
    return isinstance(sampler, (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler))


def _has_epoch(sampler: Sampler) -> bool:
    return callable(getattr(sampler, "set_epoch", None)) and isinstance(getattr(sampler, "epoch", None), int)


def chain_of(outermost: object) -> Iterator[Sampler]:
    """Yield a sampler and those that it wraps, the outermost first."""
    waiting = [outermost]
    visited: set[int] = set()
    while waiting and len(visited) < 10:  # noqa: PLR2004 - deeper than any wrapping
        sampler = waiting.pop()
        if sampler is None or id(sampler) in visited:
            continue
        visited.add(id(sampler))
        fields = getattr(sampler, "__dict__", {})
        yield sampler
        # Lightning's DistributedSamplerWrapper keeps the wrapped sampler as its data set.
        waiting += [fields[name] for name in ("sampler", "batch_sampler", "_sampler", "dataset") if name in fields]


def _notify_streamed(watch: Watch, iterator: _BaseDataLoaderIter, current: LoaderPass, batch: object) -> None:
    import torch

    if isinstance(getattr(iterator, "_dataset", None), torch.utils.data.IterableDataset):
        watch.notify("streamed", iterator, current.fetched - 1, current.workers, batch)


def _notify_beginning(watch: Watch, args: Args, kwargs: Kwargs) -> None:
    loader = kwargs.get("loader", args[1] if len(args) > 1 else None)
    watch.notify("pass_begins", getattr(loader, "dataset", None), getattr(loader, "num_workers", 0))


def _patch_sampler(watch: Watch, module: ModuleType) -> None:
    kind = module.DistributedSampler
    around(kind, "set_epoch", after=lambda args, *_: watch.notify("epoch_set", args[0]))
    around(kind, "__iter__", before=lambda args, _: watch.notify("order_made", args[0]))
    patched: set[object] = set()

    def made(args: Args, *_: object) -> None:
        # torchdata's sampler, and a program's own, are subclasses.
        for owner in type(args[0]).__mro__:
            if owner not in patched and {"state_dict", "load_state_dict"} <= vars(owner).keys():
                patched.add(owner)
                _patch_position(watch, owner)

    around(kind, "__init__", after=made)


def _patch_position(watch: Watch, kind: type) -> None:
    around(kind, "state_dict", returned=lambda args, _, state: watch.notify("position_taken", args[0], state))
    around(
        kind,
        "load_state_dict",
        after=lambda args, kwargs, _: watch.notify("position_loaded", args[0], *args[1:2], *kwargs.values()),
    )


def _patch_workers(watch: Watch, module: ModuleType) -> None:
    """Observe the first read of each worker, in its own process: in the others a batch costs nothing by that."""
    around(module, "_worker_loop", before=lambda *_: _patch_fetchers(watch))


def _patch_fetchers(watch: Watch) -> None:
    has_read = False

    def before(*_: object) -> bool:
        nonlocal has_read
        if has_read:
            return False
        has_read = True
        info = sys.modules["torch.utils.data._utils.worker"].get_worker_info()
        if info is None or info.num_workers < 2:  # noqa: PLR2004 - a worker alone
            return False
        watch.notify("worker_begins")
        return True

    def after(_: object, __: object, is_first: bool) -> None:
        if is_first:
            watch.notify("worker_began")

    fetchers = sys.modules["torch.utils.data._utils.fetch"]
    for kind in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher):
        around(kind, "fetch", before=before, after=after)


def attach(watch: Watch) -> None:
    """Observe loaders once torch.utils.data is imported."""
    passes: weakref.WeakKeyDictionary[_BaseDataLoaderIter, LoaderPass] = weakref.WeakKeyDictionary()

    def draw(args: Args, _: object, indices: int | list[int]) -> None:
        current = passes.get(args[0])
        if current is None:
            current = passes[args[0]] = LoaderPass(args[0])
        if current.samplers and not current.epochs:
            current.epochs = {place: sampler.epoch for place, sampler in enumerate(current.samplers)}
            watch.notify("drawn", current)
        if current.is_random and current.note(indices):
            watch.notify("ordered", current)

    def reset(args: Args, *_: object) -> None:
        passes.pop(args[0], None)

    def fetch(args: Args, _: object, batch: object) -> None:
        current = passes.get(args[0])
        if current is not None:
            current.fetched += 1
            watch.notify("fetched", current)
            watch.notify("handed", batch)
            if current.workers > 1 and current.fetched <= 2 * current.workers:
                _notify_streamed(watch, args[0], current, batch)

    def patch(module: ModuleType) -> None:
        around(module._BaseDataLoaderIter, "__init__", before=lambda *call: _notify_beginning(watch, *call))
        around(module._BaseDataLoaderIter, "_reset", before=reset)
        # Afterwards, since a sampler's own iterator is made with the first index.
        around(module._BaseDataLoaderIter, "_next_index", returned=draw)
        around(module._BaseDataLoaderIter, "__next__", returned=fetch)

    when_imported("torch.utils.data.dataloader", patch)
    when_imported("torch.utils.data._utils.worker", lambda module: _patch_workers(watch, module))
    when_imported("torch.utils.data.distributed", lambda module: _patch_sampler(watch, module))
