# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0082"
# title = "Each worker of a DataLoader yields the whole of an IterableDataset"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/30599",
#     "https://github.com/huggingface/datasets/issues/3423",
#     "https://github.com/espnet/espnet/issues/2081",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
# finds = ["stream_repeated"]
#
# [tool.repro.variants.failing]
# about = "two workers over a stream of four"
# raises = "AssertionError"
# match = "expected 4 samples, [0, 1, 2, 3], got [0, 0, 1, 1, 2, 2, 3, 3]"
#
# [tool.repro.variants.fixed]
# about = "each worker takes every second sample"
# source = "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset"
#
# [tool.repro.variants.with_a_length]
# outcome = "fails"
# about = "a length, which a loop over the loader takes no notice of"
#
# [tool.repro.variants.one_worker]
# outcome = "passes"
# contrast = true
# about = "one worker yields the stream once"
# ///
"""A streamed dataset is trained on as many times an epoch as the loader has workers.

Symptom: an epoch has `num_workers` times the batches, each that often in a row; metrics count them all. Silent.

Cause: a loader gives each worker process a copy of the dataset. From a map-style dataset the sampler's indices are
shared out among them; an `IterableDataset` has no indices, and each copy iterates from its beginning to its end.

A `__len__` of the dataset does not help: torch warns once the loader has yielded more, and only if `len(loader)` was
called before; Lightning ends the epoch there, after some of the samples twice and others never.

Fix: divide the stream in `__iter__` by `torch.utils.data.get_worker_info()`, or in `worker_init_fn`. Between ranks it
has to be divided as well.
"""

import itertools
import sys

from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def failing():
    return DataLoader(Stream(), num_workers=2)


class SharedOut(Stream):
    def __iter__(self):
        worker = get_worker_info()
        return itertools.islice(super().__iter__(), worker.id, None, worker.num_workers)


def fixed():
    return DataLoader(SharedOut(), num_workers=2)


class WithLength(Stream):
    def __len__(self):
        return 4


def with_a_length():
    return DataLoader(WithLength(), num_workers=2)


def one_worker():
    return DataLoader(Stream(), num_workers=1)


VARIANTS = {v.__name__: v for v in (failing, fixed, with_a_length, one_worker)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = [int(batch) for batch in VARIANTS[variant]()]
    assert got == [0, 1, 2, 3], f"expected 4 samples, [0, 1, 2, 3], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
