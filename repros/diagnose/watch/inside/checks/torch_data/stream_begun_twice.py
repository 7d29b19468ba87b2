"""Each sample of an iterable data set is read once in each epoch.

## What it does
`stream_begun_twice`: reports, inside a Lightning fit, a loader that begins an IterableDataset again before anything was
trained on its last beginning, if a number or text among the data set's own attributes has changed through that
beginning. `stream_repeated`: reports a worker of an IterableDataset whose first two batches differ, and equal those of
another worker.

## Why is this bad?
The samples that were read at first are lost; or each sample comes once for each worker.

## Example
An `IterableDataset.__iter__` that ignores `get_worker_info()`, read with `num_workers=4`.

## Known misses
`stream_begun_twice`: data sets that keep no position in themselves, validation, and loops that are not Lightning's.
`stream_repeated`: streams of which each batch is the same; workers of different ranks.

## Cost
One look at the data set's attributes when a pass over it begins; two comparisons of batches for each loader with
several workers.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from torch.utils.data import IterableDataset
    from torch.utils.data.dataloader import _BaseDataLoaderIter

CHECKS = (
    Check("stream_begun_twice", "a stream is begun twice, and its first samples are lost"),
    Check("stream_repeated", "each worker of a loader reads the whole stream"),
)


def listen(watch: Watch) -> None:
    """Attach the check."""
    begun: dict[int, tuple[IterableDataset, dict[str, object]]] = {}
    """Data sets that were begun since the last backward in a fit, with their attributes just before."""
    fitting: list[Trainer] = []

    def fit_begins(trainer: Trainer) -> None:
        begun.clear()
        fitting[:] = [trainer]

    def fit_ended(_: object) -> None:
        begun.clear()
        fitting.clear()

    def pass_begins(dataset: object, _: int) -> None:
        import torch

        if not fitting or not fitting[0].training or not isinstance(dataset, torch.utils.data.IterableDataset):
            return
        present = _numbers(dataset)
        _, before = begun.get(id(dataset), (None, present))
        changed = sorted(name for name, value in before.items() if repr(present.get(name)) != repr(value))
        if changed:
            name = type(dataset).__name__
            text = f"{name} is begun again before anything was trained on it: its {changed[0]} has moved on"
            numbers = {"before": before[changed[0]], "now": present[changed[0]]}
            watch.report("stream_begun_twice", text, names=changed[:5], numbers=numbers)
        begun[id(dataset)] = (dataset, present)

    watch.listen("fit_begins", fit_begins)
    watch.listen("fit_ended", fit_ended)
    watch.listen("pass_begins", pass_begins)
    watch.listen("before_backward", begun.clear)
    _listen_for_repeated(watch)


def _listen_for_repeated(watch: Watch) -> None:
    first: weakref.WeakKeyDictionary[_BaseDataLoaderIter, list[object]] = weakref.WeakKeyDictionary()
    """The first batch of the first worker, and that of the second, of each pass."""

    def streamed(iterator: _BaseDataLoaderIter, number: int, workers: int, batch: object) -> None:
        if number == 0:
            first[iterator] = [_leaf(batch)]
        elif number == 1 and _is_same(first.get(iterator, [None])[0], _leaf(batch)):
            first[iterator].append(None)
        elif number == workers and len(first.get(iterator, ())) == 2:  # noqa: PLR2004 - the two above
            first[iterator][1] = _leaf(batch)
        elif number == workers + 1 and iterator in first:
            one, two = first.pop(iterator, [None])[0:2] if len(first[iterator]) == 2 else (None, None)  # noqa: PLR2004
            if two is not None and _is_same(two, _leaf(batch)) and not _is_same(one, two):
                text = f"each of the {workers} workers of a loader reads the whole stream: samples come {workers} times"
                watch.report("stream_repeated", text, numbers={"workers": workers})

    watch.listen("streamed", streamed)


def _leaf(batch: object) -> object:
    """Return the first tensor of a batch, or the batch itself if it is a number or a text."""
    import torch

    for _ in range(5):
        if torch.is_tensor(batch) or isinstance(batch, (int, float, str)):
            return batch
        values = list(batch.values()) if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else []
        if not values:
            return None
        batch = values[0]
    return None


def _is_same(one: object, other: object) -> bool:
    """Return whether two tensors, numbers or texts are equal; NaN, a missing value, equals NaN."""
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())  # noqa: PLR0124 - NaN
    return one is not None and type(one) is type(other) and repr(one) == repr(other)


def _numbers(dataset: IterableDataset) -> dict[str, object]:
    # Not by getattr, which would run properties; a counter may be an attribute of the class at first.
    attributes = {**vars(type(dataset)), **vars(dataset)}
    return {name: value for name, value in attributes.items() if type(value) in {int, float, str} and name[:2] != "__"}
