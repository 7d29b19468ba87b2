# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0177"
# title = "MetricCollection: a second compute() gives another metric's value, or an old one"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2206",
#     "https://github.com/Lightning-AI/torchmetrics/issues/2570",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/torchmetrics/pull/2211",
#     "https://github.com/Lightning-AI/torchmetrics/issues/3250",
# ]
# packages = ["torchmetrics"]
# affected = ["torchmetrics>=1.2.1,<1.4.1"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "precision and recall of one batch, computed twice: for a log and for a report"
# raises = "AssertionError"
# match = "expected precision 1.0 and recall 0.25, got 1.0 and 1.0"
#
# [tool.repro.variants.fixed]
# about = "compute_groups=False"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/2570"
#
# [tool.repro.variants.kept]
# outcome = "passes"
# about = "compute once, and keep the values"
#
# [tool.repro.variants.each_batch]
# outcome = "fails"
# affected = ["torchmetrics<1.2.1"]
# about = "compute after each of two batches: up to 1.2.0 the second value of all but the first metric is the first one"
# raises = "AssertionError"
# match = "expected precision 0.8 and recall 0.5714, got 0.8 and 0.25"
#
# [tool.repro.variants.each_batch_without_groups]
# outcome = "passes"
# about = "compute after each of two batches with compute_groups=False"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/2206"
# ///
"""The metrics of a collection have wrong values from its second `compute()` on.

Symptom: what is logged in the validation and what is printed at its end differ, or several metrics of a collection have
one value. The first `compute()` is right. Silent.

Cause: precision and recall count the same things, so the collection forms a compute group: one state, of which only the
first metric is updated. Each metric keeps its last value until its own `update()` drops it. Up to torchmetrics 1.2.0
the others are never updated, and so keep their first value. From 1.2.1 on the collection gave them the kept value of
the group's first metric together with its state; 1.4.1 drops it instead.

Fix: torchmetrics 1.4.1. Before it, pass `compute_groups=False`.

Watch: no check sees it yet: one would have to compute each metric of a group once more.
"""

import sys

import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryPrecision, BinaryRecall

# One of four positives is found: precision 1 / 1, recall 1 / 4. The second batch adds three that are found and one
# negative that is taken for a positive: precision 4 / 5, recall 4 / 7.
FIRST = torch.tensor([1, 0, 0, 0]), torch.tensor([1, 1, 1, 1])
SECOND = torch.tensor([1, 1, 1, 1]), torch.tensor([1, 1, 1, 0])


def metrics(**options):
    return MetricCollection({"precision": BinaryPrecision(), "recall": BinaryRecall()}, **options)


def compute_twice(collection):
    collection.update(*FIRST)
    collection.compute()
    return collection.compute(), (1.0, 0.25)


def compute_each_batch(collection):
    collection.update(*FIRST)
    collection.compute()
    collection.update(*SECOND)
    return collection.compute(), (0.8, 0.5714)


def failing():
    return compute_twice(metrics())


def fixed():
    return compute_twice(metrics(compute_groups=False))


def kept():
    collection = metrics()
    collection.update(*FIRST)
    return collection.compute(), (1.0, 0.25)


def each_batch():
    return compute_each_batch(metrics())


def each_batch_without_groups():
    return compute_each_batch(metrics(compute_groups=False))


VARIANTS = {v.__name__: v for v in (failing, fixed, kept, each_batch, each_batch_without_groups)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    values, (precision, recall) = VARIANTS[variant]()
    got = tuple(round(values[name].item(), 4) for name in ("precision", "recall"))
    assert got == (precision, recall), f"expected precision {precision} and recall {recall}, got {got[0]} and {got[1]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
