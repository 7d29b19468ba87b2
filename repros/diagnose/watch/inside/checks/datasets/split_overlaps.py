"""The parts of a stream that `take` and `skip` make have no row in common (datasets).

## What it does
`split_overlaps`: reports that `take(n)` and `skip(n)` of one IterableDataset, or what was made of them, are read by
different numbers of readers: workers of a loader, times the nodes of `split_dataset_by_node`, as far as the stream has
shards for them.

## Why is this bad?
Each reader takes or skips its share of the n rows from shards of its own. What one reader takes in the first shard is
not what four skip in four of them: the training sees rows of the validation, and other rows are in neither.

## Example
`DataLoader(rows.skip(1000), num_workers=4)` for the training, and `rows.take(1000)` read without workers to validate.

## Known misses
Parts of streams that were opened separately, and those that are read by separate programs. Parts of which one was made
after `split_dataset_by_node`, where nothing is shared out. Passes without a loader that begin before the first step of
an optimizer: they may be a look at the data.

## Cost
One entry for each stream that is made of another, and a look at its shards when a pass begins.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from datasets import IterableDataset

CHECKS = (
    Check(
        "split_overlaps",
        "parts of a stream are read by different numbers of workers, and overlap",
        "read both with the same `num_workers`, or split by whole files: `rows.shard(num_shards, index)`",
    ),
)


class _Boundary:
    """The number of rows at which a stream is divided."""

    def __init__(self) -> None:
        self.readers: dict[str, int] = {}
        """The number of workers, on all nodes, that have read each part, by the method that made it."""


class _Part(NamedTuple):
    """One side of a boundary."""

    boundary: _Boundary
    method: str
    rows: int


class _Parts:
    """The streams that `take` and `skip` have made, and what was made of them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._boundaries: weakref.WeakKeyDictionary[IterableDataset, dict[int, _Boundary]] = weakref.WeakKeyDictionary()
        """The boundaries of each stream, by rows."""
        self._parts: weakref.WeakKeyDictionary[IterableDataset, tuple[_Part, ...]] = weakref.WeakKeyDictionary()

    def stream_derived(self, parent: IterableDataset, method: str, child: IterableDataset) -> None:
        parts = self._parts.get(parent, ())
        rows = _shared_rows(child) if method in {"take", "skip"} else 0
        if rows > 1:  # one row is in the first shard, for one reader and for several
            boundary = self._boundaries.setdefault(parent, {}).setdefault(rows, _Boundary())
            parts = (*parts, _Part(boundary, method, rows))
        if parts and child is not parent:
            self._parts[child] = parts
            self._watch.listen_to(self, "pass_begins", "stream_begins")

    def pass_begins(self, data: object, workers: int) -> None:
        # Data of any kind, which may not be referred to weakly.
        if "_ex_iterable" in getattr(data, "__dict__", ()):
            self._read(data, workers)

    def stream_begins(self, stream: IterableDataset) -> None:
        # Not in a worker, which reads its share, and not a look at the first rows, or at all of them.
        if self._watch.count("after_step") and sys.modules["torch"].utils.data.get_worker_info() is None:
            self._read(stream, 0, is_again=True)

    def _read(self, stream: Any, workers: int, *, is_again: bool = False) -> None:
        parts = self._parts.get(stream, ())
        if not parts:
            return
        readers = _readers(stream, workers)
        for part in parts:
            known = part.boundary.readers
            if not (is_again and part.method in known):
                known[part.method] = readers
            if len(set(known.values())) > 1:
                text = (
                    f"take({part.rows}) and skip({part.rows}) of one stream are read by different numbers of workers"
                    f" ({known['take']} and {known['skip']}): each has a share of the {part.rows} rows from shards of"
                    " its own, and some rows are in both parts"
                )
                self._watch.report("split_overlaps", text, numbers=dict(known), place=user_location())


def listen(watch: Watch) -> None:
    """Attach the check."""
    watch.listen("stream_derived", _Parts(watch).stream_derived)


def _shared_rows(stream: IterableDataset) -> int:
    """Return the number of rows that are taken or skipped; 0 where readers do not share it out."""
    source: Any = stream._ex_iterable
    rows = getattr(source, "n", 0) if getattr(source, "split_when_sharding", False) else 0
    return rows if isinstance(rows, int) else 0


def _readers(stream: Any, workers: int) -> int:
    """Return how many workers, on all nodes, share a stream out."""
    shards = int(stream.num_shards if hasattr(stream, "num_shards") else stream.n_shards)
    nodes = int(getattr(getattr(stream, "_distributed", None), "world_size", 1))
    if shards % nodes:
        nodes = 1  # each node leaves out the rows of the others
    return nodes * max(1, min(workers, shards // nodes))
