"""Each rank gets a shard of the data of its own.

## What it does
`share_repeated`: reports two ranks of the program's only DistributedDataParallel that train on loaders whose samplers
draw the same shard (`rank`) of as many (`num_replicas`) as the wrapper has ranks. `share_of_other_order`: reports
shuffling samplers, each of one shard for each rank of the program, that have different seeds. `share_of_other_data`:
reports such samplers over Subsets of different indices, which were sharded before or split at random on each rank. The
process outside compares these three. `share_of_share`: reports a sharding sampler inside another one, as a
DistributedSampler inside accelerate's own sharding, if both together make more shards than there are ranks. The last
two also report as soon as accelerate's `prepare` shards a loader.

## Why is this bad?
Some samples are trained on several times in each epoch and others never. Nothing fails, and throughput looks right.

## Example
`DistributedSampler(data, num_replicas=2, rank=0)` on both ranks, or `DistributedSampler(Subset(data, range(rank, n,
2)))`.

## Known misses
Loaders without a sharding sampler, which may have been given a part of the data. Data sets that shard themselves.
`share_repeated` reports nothing with several wrappers, since it is unknown which one a loader feeds. The others report
nothing for samplers with fewer shards than ranks (tensor or pipeline parallel), and for passes that nothing is trained
on, unless accelerate has prepared the loader.

## Cost
One event for each sampler.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.loaders import LoaderPass, chain_of
from repros.diagnose.watch.inside.values import stable_digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Sampler

CHECKS = (
    Check(
        "share_repeated",
        "two ranks are trained on the same shard of the data",
        "give each rank its own part: `DistributedSampler(data, num_replicas=world_size, rank=rank)`",
    ),
    Check(
        "share_of_other_order",
        "the sharding samplers of ranks shuffle with different seeds",
        "give DistributedSampler the same `seed` on all ranks; it shards after the shuffle",
    ),
    Check("share_of_other_data", "the samplers of ranks shard different data"),
    Check("share_of_share", "the loader is sharded twice"),
)

_MOST = 20
"""The most passes that wait for a step."""
_OTHER_DATA = "each rank reads its shard of another Subset of the data: the other shards of it are never read"
_INDICES = 1000
"""The number of a Subset's first indices that are compared."""


class _Shares:
    """The samplers of the passes that were trained on."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._waiting: list[LoaderPass] = []
        self._written: weakref.WeakSet[Sampler] = weakref.WeakSet()
        self._prepared = 0

    def drawn(self, new: LoaderPass) -> None:
        self._waiting.append(new)
        del self._waiting[:-_MOST]
        self._watch.listen("after_step", self.after_step)

    def after_step(self, *_: object) -> None:
        trained = [current for current in self._waiting if current.fetched]
        self._waiting[:] = [current for current in self._waiting if not current.fetched]
        if not self._waiting:
            self._watch.ignore("after_step", self.after_step)
        for current in trained:
            for sampler in [sampler for sampler in current.samplers if sampler not in self._written]:
                self._inspect(sampler, current.chain)
                self._written.add(sampler)

    def _inspect(self, sampler: Sampler, chain: list[Sampler]) -> None:
        shares, mine = getattr(sampler, "num_replicas", None), getattr(sampler, "rank", None)
        if not isinstance(shares, int) or not isinstance(mine, int) or shares < 2:  # noqa: PLR2004 - no sharing
            return
        name, ranks = type(sampler).__name__, replicas.ranks_of_program()
        self._check_for_share(chain, ranks)
        live = [replica for replica in replicas.replicas if replica.module() is not None]
        if len(live) == 1 and shares == len(live[0].key[1]):
            text = "two ranks are trained on the same shard of the data"
            self._write("share_repeated", live[0].key, f"{name}.rank", mine, "different", text)
        if shares != len(ranks):
            return
        key = [replicas.run_name(), ranks]
        seed = getattr(sampler, "seed", None)
        if getattr(sampler, "shuffle", False) and isinstance(seed, int):
            text = "each rank reads its shard of a random order of its own: some samples come twice, others never"
            self._write("share_of_other_order", key, f"{name}.seed", seed, "same", text)
        indices = _indices(getattr(sampler, "dataset", None))
        if indices is not None:
            self._write("share_of_other_data", key, "indices of the Subset", indices, "same", _OTHER_DATA)

    def prepared_loader(self, loader: DataLoader) -> None:
        ranks = replicas.ranks_of_program()
        chain = list(chain_of(getattr(loader, "batch_sampler", None)))
        if len(ranks) < 2 or not any(type(sampler).__name__ == "BatchSamplerShard" for sampler in chain):  # noqa: PLR2004
            return
        self._check_for_share(chain, ranks)
        indices = _indices(loader.dataset)
        if indices is not None:
            self._prepared += 1
            whole = loader.dataset.dataset
            count = len(whole) if hasattr(whole, "__len__") else 0
            key = [replicas.run_name(), ranks, "prepared", count, self._prepared]
            self._write("share_of_other_data", key, "indices of the Subset", indices, "same", _OTHER_DATA)

    def _check_for_share(self, chain: list[Sampler], ranks: list[int]) -> None:
        shares = [number for number in map(_shares_of, chain) if number > 1]
        if len(shares) > 1 and math.prod(shares) > len(ranks):
            text = f"a rank is trained on one of {math.prod(shares)} shards of the data: the loader is sharded twice"
            self._watch.report("share_of_share", text, numbers={"shares": math.prod(shares), "ranks": len(ranks)})

    def _write(self, check: str, key: Sequence[object], what: str, value: object, wanted: str, text: str) -> None:
        if self._watch.is_enabled(check):
            details = {"key": [*key, "sampler", len(self._written)], "number": 0, "what": what, "value": value}
            self._watch.events.write("fact", check=check, wanted=wanted, text=text, **details)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    shares = _Shares(watch)
    watch.listen_to(shares, "drawn", "prepared_loader")


def _shares_of(sampler: Sampler) -> int:
    # Not by getattr: a wrapper may forward attributes to what it wraps.
    shares = getattr(sampler, "__dict__", {}).get("num_replicas", 1)
    if type(sampler).__name__ == "BatchSamplerShard":  # accelerate's
        shares = sampler.num_processes
    return shares if isinstance(shares, int) else 1


def _indices(dataset: object) -> str | None:
    """Return a digest of the indices of a Subset, or None for other data."""
    import torch

    if not isinstance(dataset, torch.utils.data.Subset):
        return None
    indices = list(map(int, dataset.indices[:_INDICES]))
    return f"{len(dataset)}, {stable_digest(*indices)}"
