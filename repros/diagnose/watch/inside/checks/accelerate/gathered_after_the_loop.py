"""`gather_for_metrics` gets one batch, while the loop over its loader goes on (accelerate).

## What it does
`gathered_after_the_loop`: reports a call outside of any loop over a prepared loader, on several ranks, with a tensor
that has a row for each sample that this rank had in the last pass, if the passes of all ranks had more rows than the
data set has samples. `gathered_as_one_batch`: reports a call at the last batch of a pass with a tensor that has the
rows of all its batches.

## Why is this bad?
The repeated samples, which fill up the last batch, are counted twice in the metric; or all but the last batch's number
of predictions are cut.

## Example
`accelerator.gather_for_metrics(torch.cat(predictions))` after the loop.

## Known misses
Passes in which no sample was repeated. Tensors of another length, such as a loss, and objects that are no tensors.
Loaders without `even_batches`, which repeat none, and data sets without a length.

## Cost
One look at the first dimensions of what is gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.accelerators import count_processes, gradient_state
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from accelerate.data_loader import DataLoaderDispatcher, DataLoaderShard

CHECKS = (
    Check("gathered_after_the_loop", "predictions are gathered when the loop is over, with the repeated samples"),
    Check("gathered_as_one_batch", "predictions of several batches are cut to the size of the last one"),
)


class _UnevenPass(NamedTuple):
    """A pass over a prepared loader whose last batch is not full, or was filled up."""

    samples: int
    """Samples of the data set."""
    rows: int
    """Rows of all batches of this rank."""
    batch: int
    """Rows of a full batch of this rank."""


class _Gathered:
    """The passes over prepared loaders, and what is gathered."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._last: _UnevenPass | None = None

    def loader_ended(self, loader: DataLoaderShard | DataLoaderDispatcher) -> None:
        self._last = _pass_over(loader)

    def gathered_for_metrics(self, data: object) -> None:
        state = gradient_state()
        if state is None:
            return
        if state.in_dataloader:
            current = _pass_over(state.active_dataloader) if state.end_of_dataloader else None
            if current is not None and current.rows in _lengths(data) and current.rows > current.batch:
                text = (
                    f"gather_for_metrics is given the {current.rows} rows of all batches at the last of them, and cuts"
                    f" what it gathers to the {state.remainder} samples that this one has"
                )
                self._watch.report("gathered_as_one_batch", text, numbers={"samples": current.samples})
            return
        last, ranks = self._last, count_processes()
        if last is not None and ranks * last.rows > last.samples and last.rows in _lengths(data):
            text = (
                f"gather_for_metrics is called after the loop and gathers {ranks * last.rows} rows for {last.samples}"
                " samples: it cuts the repeated ones within the loop alone"
            )
            self._watch.report("gathered_after_the_loop", text, numbers={"samples": last.samples})


def listen(watch: Watch) -> None:
    """Attach the checks."""
    gathered = _Gathered(watch)
    watch.listen_to(gathered, "loader_ended", "gathered_for_metrics")


def _pass_over(loader: DataLoaderShard | DataLoaderDispatcher) -> _UnevenPass | None:
    """Return the pass of a loader at its last batch; None if that is full, or its rows are unknown."""
    ranks, sampler = count_processes(), getattr(loader, "batch_sampler", None)
    is_even = ranks == 1 or getattr(sampler, "even_batches", False)
    if loader.remainder <= 0 or not is_even or not hasattr(loader.dataset, "__len__"):
        return None
    samples, batch = len(loader.dataset), int(loader.total_batch_size)
    rows = samples if ranks == 1 else -(-samples // batch) * batch // ranks
    return _UnevenPass(samples, rows, batch // ranks)


def _lengths(data: object) -> Iterator[int]:
    """Yield the first dimensions of the tensors in what is gathered."""
    import torch

    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor) and value.dim():
            yield len(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, (list, tuple)) and len(value) < 100:  # noqa: PLR2004 - no list of objects
            waiting += value
