# /// script
# dependencies = ["datasets>=2.18"]
#
# [tool.repro]
# id = "RPR-0130"
# title = "set_epoch on the dataset that map was called on does not shuffle what map returned"
# kind = "by design"
# documented = "https://huggingface.co/docs/datasets/stream"
# upstream.reports = [
#     "https://github.com/huggingface/datasets/issues/7051",
#     "https://github.com/huggingface/trl/pull/6351",
# ]
# upstream.related = ["https://github.com/huggingface/datasets/issues/6673"]
# packages = ["datasets"]
# home = "current"
# silent = true
# finds = ["epoch_set_on_parent"]
#
# [tool.repro.variants.failing]
# about = "shuffled.set_epoch(epoch), and iterate shuffled.map(...)"
# raises = "AssertionError"
# match = "expected 2, got 1"
#
# [tool.repro.variants.fixed]
# about = "mapped.set_epoch(epoch), on what is iterated"
#
# [tool.repro.variants.formatted]
# outcome = "fails"
# about = "the same with with_format(...)"
#
# [tool.repro.variants.split]
# outcome = "fails"
# about = "the same with split_dataset_by_node(...)"
#
# [tool.repro.variants.mapped_anew]
# outcome = "fails"
# about = "call map anew in each epoch: it does not take the epoch over"
#
# [tool.repro.variants.nested]
# outcome = "fails"
# about = "set_epoch on an iterable dataset whose generator reads the shuffled one"
# finds = []
#
# [tool.repro.variants.shuffled_anew]
# outcome = "passes"
# about = "shuffle with another seed in each epoch, and map that"
# ///
"""A stream is shuffled and mapped, and `set_epoch` is called on the dataset that was shuffled.

Symptom: all epochs have the same order. Silent.

Cause: `map`, `with_format` and `split_dataset_by_node` return a dataset of its own, which begins with epoch 0 and asks
no parent for its epoch. A dataset from a generator that reads another one does not hand the epoch on.

Fix: call `set_epoch` on the dataset that is iterated. Where one reads another in a generator, shuffle the outermost.

Watch: no check sees `nested`, since which data set a generator reads is known to the generator alone.
"""

import sys

from datasets import Dataset, IterableDataset
from datasets.distributed import split_dataset_by_node


def plus_one(row):
    return {"x": row["x"] + 1}


def failing(shuffled):
    mapped = shuffled.map(plus_one)
    for epoch in range(2):
        shuffled.set_epoch(epoch)
        yield mapped


def fixed(shuffled):
    mapped = shuffled.map(plus_one)
    for epoch in range(2):
        mapped.set_epoch(epoch)
        yield mapped


def formatted(shuffled):
    with_numpy = shuffled.with_format("numpy")
    for epoch in range(2):
        shuffled.set_epoch(epoch)
        yield with_numpy


def split(shuffled):
    half = split_dataset_by_node(shuffled, rank=0, world_size=2)
    for epoch in range(2):
        shuffled.set_epoch(epoch)
        yield half


def mapped_anew(shuffled):
    for epoch in range(2):
        shuffled.set_epoch(epoch)
        yield shuffled.map(plus_one)


def nested(shuffled):
    outer = IterableDataset.from_generator(lambda: iter(shuffled))
    for epoch in range(2):
        outer.set_epoch(epoch)
        yield outer


def shuffled_anew(shuffled):
    for epoch in range(2):
        yield shuffled.shuffle(seed=epoch, buffer_size=100).map(plus_one)


VARIANTS = {v.__name__: v for v in (failing, fixed, formatted, split, mapped_anew, nested, shuffled_anew)}


def train(variant, accelerator):
    rows = Dataset.from_dict({"x": range(100)}).to_iterable_dataset(num_shards=4)
    shuffled = rows.shuffle(seed=0, buffer_size=100)
    got = len({tuple(int(row["x"]) for row in dataset) for dataset in VARIANTS[variant](shuffled)})
    assert got == 2, f"different orders in two epochs: expected 2, got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
