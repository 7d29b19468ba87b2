"""A data set gives the rows, and the order of them, that the program asks for (datasets).

## What it does
`epoch_set_on_parent`: reports that passes over what `map` and the like have made of a shuffled IterableDataset have one
order, although `set_epoch` gave that data set, and not the iterated one, another epoch in between. `split_differs`:
reports ranks of a process group that call `train_test_split` without a seed on the same data and get other rows for the
test; possible, if they do so by `shuffle` without a seed and `select`. The process outside compares.
`rows_of_older_code`: reports that `map` returns rows from a cache that this process has written with other code: a
function of the same name was edited and loaded anew.

## Why is this bad?
Each epoch has the same order; one rank tests on what another one trains on; or an edited preprocessing has no effect.

## Example
`dataset.set_epoch(epoch)` in a loop over `dataset.map(tokenize)`.

## Known misses
`epoch_set_on_parent`: data sets with the epoch that are iterated themselves, and iterated ones with an epoch of their
own. `split_differs`: data with another fingerprint on each rank, which may be shards; splits before the process group
that are not trained on in a DistributedDataParallel after. `rows_of_older_code`: caches of earlier processes, whose
code is unknown, and what a function reads from files.

## Cost
One look at the epochs when a pass begins; a digest of 1000 indices for each split; the bytecode of each function that
`map` is called with.
"""

from __future__ import annotations

import hashlib
import os
import types
import weakref
from collections.abc import Iterator
from types import CellType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.patch import Args, Kwargs
from repros.diagnose.watch.inside.values import stable_digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

CHECKS = (
    Check("epoch_set_on_parent", "the epoch is set on the parent of the iterated data set"),
    Check("split_differs", "each rank splits the data at random on its own"),
    Check("rows_of_older_code", "rows come from a cache that older code has written"),
)

_INDICES = 1000
_DEPTH = 3
"""The depth to which the calls of a mapped function are followed."""
_SPLIT = "ranks have split the same data at random with different results: one tests on what another one trains on"
_CHOSEN = "possible: ranks have shuffled the same data without a seed, and have selected different rows of it"


class _Stream:
    """What this process knows of an IterableDataset."""

    def __init__(self, parent: _Stream | None = None, *, is_shuffled: bool = False) -> None:
        self.parent = parent
        self.is_shuffled: bool = is_shuffled or (parent is not None and parent.is_shuffled)
        self.epoch: int | None = None
        """The argument of its last `set_epoch`."""
        self.is_iterated = False
        self.passes: dict[int, int] = {}
        """By the epoch of a derived data set: this one's epoch in the first pass over it."""


class _Streams:
    """The data sets that are read as streams."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._streams: weakref.WeakKeyDictionary[IterableDataset, _Stream] = weakref.WeakKeyDictionary()

    def stream_derived(self, parent: IterableDataset, method: str, child: IterableDataset) -> None:
        made = _Stream(self._streams.setdefault(parent, _Stream()), is_shuffled=method == "shuffle")
        if child is not parent:
            self._streams[child] = made

    def stream_epoch_set(self, stream: IterableDataset, epoch: int) -> None:
        self._streams.setdefault(stream, _Stream()).epoch = int(epoch)

    def stream_begins(self, stream: IterableDataset, *_: int) -> None:
        # `pass_begins` comes with data of any kind, which may not be referred to weakly.
        read = self._streams.get(stream) if "_ex_iterable" in getattr(stream, "__dict__", ()) else None
        if read is None:
            return
        read.is_iterated = True
        asked = read
        while asked.epoch is None and asked.parent is not None:
            asked = asked.parent
        if asked is read or asked.epoch is None or asked.is_iterated or not asked.is_shuffled:
            return
        own = int(stream._epoch)
        before = asked.passes.setdefault(own, asked.epoch)
        if before != asked.epoch:
            text = (
                f"set_epoch({asked.epoch}) was called on the IterableDataset that this one was made from, which has"
                f" epoch {own} still: its order is that of the pass before"
            )
            self._watch.report("epoch_set_on_parent", text, numbers={"set": asked.epoch, "read": own})


class _Splits:
    """The splits at random of this rank."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._held: list[dict[str, Any]] = []
        """Those that were made before the process group."""
        self._shuffled: weakref.WeakKeyDictionary[Dataset, str] = weakref.WeakKeyDictionary()
        """The fingerprints of data before they were shuffled without a seed."""
        self._counts: dict[str, int] = {}
        """The number of splits of each data set so far, by its fingerprint."""

    def rows_split(self, data: Dataset, args: Args, kwargs: Kwargs, result: Dataset) -> None:
        names = ("test_size", "train_size", "shuffle", "stratify_by_column", "seed", "generator")
        given = {**dict(zip(names, args)), **kwargs}
        is_random = given.get("shuffle", True) and given.get("seed") is None and given.get("generator") is None
        if is_random:
            self._note(data._fingerprint, result["test"], _SPLIT)

    def rows_shuffled(self, data: Dataset, args: Args, kwargs: Kwargs, result: Dataset) -> None:
        given = {**dict(zip(("seed", "generator"), args)), **kwargs}
        if given.get("seed") is None and given.get("generator") is None:
            self._shuffled[result] = data._fingerprint

    def rows_selected(self, data: Dataset, _: object, __: object, result: Dataset) -> None:
        if data in self._shuffled and len(result) < len(data):
            # The order, and not what was chosen: each rank may take a share of an order that all have.
            self._note(self._shuffled.pop(data), data, _CHOSEN)

    def _note(self, fingerprint: str, chosen: Dataset, text: str) -> None:
        indices = getattr(chosen, "_indices", None)
        if indices is None or not self._watch.is_enabled("split_differs"):
            return
        first = indices.column(0)[:_INDICES].to_pylist()
        value = f"{len(chosen)}, {stable_digest(*first)}"
        self._counts[fingerprint] = self._counts.get(fingerprint, 0) + 1
        data = [fingerprint, self._counts[fingerprint]]
        self._held.append({"data": data, "text": text, "value": value, "place": user_location()})
        self.write()

    def write(self, *_: object) -> None:
        ranks = replicas.ranks_of_program()
        held = self._held if len(ranks) > 1 else []
        while held:
            split = held.pop(0)
            key = [replicas.run_name(), ranks, *split.pop("data")]
            details = {"key": key, "number": 0, "what": "indices of the rows", "wanted": "same", **split}
            self._watch.events.write("fact", check="split_differs", **details)


class _Mapped:
    """The caches that `map` has written in this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._codes: dict[tuple[str, int, int], str] = {}
        """A digest of the code that each file was written with, by its name, time and number."""

    def rows_mapped(self, data: Dataset, args: Args, kwargs: Kwargs, result: Dataset) -> None:
        function = kwargs.get("function", args[0] if args else None)
        function = getattr(function, "__func__", function)
        if not isinstance(function, types.FunctionType):
            return
        code = _digest(function)
        # What a function without a result is mapped over stays in its own files.
        for file in _files(result) - _files(data):
            status = os.stat(file)
            key = (file, status.st_mtime_ns, status.st_ino)
            if self._codes.setdefault(key, code) != code:
                text = (
                    f"map returns rows from the cache of an older {function.__name__}: its code, or that of a function"
                    " that it calls, has changed since, and the cache's name has not"
                )
                self._watch.report("rows_of_older_code", text, names=[function.__name__])


def listen(watch: Watch) -> None:
    """Attach the checks."""
    streams, splits, mapped = _Streams(watch), _Splits(watch), _Mapped(watch)
    watch.listen_to(streams, "stream_derived", "stream_epoch_set", "stream_begins")
    watch.listen("pass_begins", streams.stream_begins)  # its workers read it, each in a process of its own
    watch.listen_to(splits, "rows_split", "rows_shuffled", "rows_selected")
    watch.listen("replica", splits.write)
    watch.listen("rows_mapped", mapped.rows_mapped)


def _files(data: Dataset) -> set[str]:
    return {str(file["filename"]) for file in data.cache_files}


def _digest(function: types.FunctionType) -> str:
    """Return a digest of the bytecode of a function and of those that it can reach by name or closure."""
    codes = [_bytes(code) for called in _reached(function, _DEPTH) for code in _codes(called.__code__)]
    return hashlib.sha256(b"\0".join(codes)).hexdigest()


def _reached(function: types.FunctionType, depth: int) -> Iterator[types.FunctionType]:
    yield function
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    reached: list[object] = [function.__globals__.get(name) for name in sorted(names)]
    reached += [_content(cell) for cell in function.__closure__ or ()]
    for other in reached if depth else ():
        if not isinstance(other, types.FunctionType) or other is function:
            continue
        if "site-packages" not in other.__code__.co_filename:
            yield from _reached(other, depth - 1)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _bytes(code: types.CodeType) -> bytes:
    constants = [repr(one) for one in code.co_consts if not isinstance(one, (types.CodeType, frozenset))]
    return code.co_code + repr((constants, code.co_names)).encode("utf-8", "backslashreplace")
