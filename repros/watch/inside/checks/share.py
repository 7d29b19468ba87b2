"""Each rank gets a share of the data of its own.

Speaks: when two ranks of the only DistributedDataParallel of the program are trained on loaders whose samplers say
that they draw the same share (`rank`) of as many (`num_replicas`) as the wrapper has ranks. The process outside
compares.
Silent: about loaders without such a sampler, which may have been given a part of the data already, and about data sets
that are split by themselves; with several wrappers, since it is not known which one a loader feeds.
Costs: one line for each sampler.
"""

from __future__ import annotations

import weakref
from typing import Any

from repros.watch.inside.checks import Check
from repros.watch.inside.observe import replicas
from repros.watch.inside.watch import Watch

CHECKS = (Check("share_repeated", "two ranks are trained on the same share of the data"),)

_MOST = 20
"""Passes that are kept until a step follows."""


def listen(watch: Watch) -> None:
    """Attach the check."""
    waiting: list[Any] = []
    written: weakref.WeakSet[Any] = weakref.WeakSet()

    def drawn(new: Any) -> None:
        waiting.append(new)
        del waiting[:-_MOST]

    def after_step(*_: Any) -> None:
        if not waiting:
            return
        live = [replica for replica in replicas.replicas if replica.module() is not None]
        trained = [current for current in waiting if current.fetched]
        waiting[:] = [current for current in waiting if not current.fetched]
        if len(live) != 1 or not watch.wants("share_repeated"):
            return
        for sampler in [sampler for current in trained for sampler in current.samplers if sampler not in written]:
            shares, mine = getattr(sampler, "num_replicas", None), getattr(sampler, "rank", None)
            if shares == len(live[0].key[1]) and shares > 1 and isinstance(mine, int):
                key = [*live[0].key, "sampler", len(written)]
                text = "two ranks are trained on the same share of the data"
                details = {"what": f"{type(sampler).__name__}.rank", "value": mine, "wanted": "different", "text": text}
                watch.events.write("fact", check="share_repeated", key=key, number=0, **details)
            written.add(sampler)

    watch.listen("drawn", drawn)
    watch.listen("after_step", after_step)
