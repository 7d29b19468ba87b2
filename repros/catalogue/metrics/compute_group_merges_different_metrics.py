# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0116"
# title = "MetricCollection merges metrics that agree on the first batch only"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/746",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1890",
#     "https://github.com/Lightning-AI/torchmetrics/issues/2596",
#     "https://github.com/Lightning-AI/torchmetrics/issues/2916",
#     "https://github.com/alan-turing-institute/icenet-mp/issues/537",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2612",
#     "https://github.com/Lightning-AI/torchmetrics/pull/1896",
# ]
# packages = ["torchmetrics"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "accuracies with thresholds 0.5 and 0.9, whose first batch has clear scores only"
# raises = "AssertionError"
# match = "expected accuracies 1.0 and 0.3333 for thresholds 0.5 and 0.9, got 1.0 and 1.0"
#
# [tool.repro.variants.fixed]
# about = "compute_groups=False"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/1890"
#
# [tool.repro.variants.named_groups]
# outcome = "passes"
# about = "groups of one's own, in which each metric is alone"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html#metriccollection"
#
# [tool.repro.variants.forward]
# outcome = "passes"
# about = "call the collection instead of its update(): each metric then updates itself"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/1083"
#
# [tool.repro.variants.other_order]
# outcome = "fails"
# about = "the stricter metric first: now the other one reads its value"
# raises = "AssertionError"
# match = "expected accuracies 1.0 and 0.3333 for thresholds 0.5 and 0.9, got 0.3333 and 0.3333"
#
# [tool.repro.variants.after_reset]
# outcome = "fails"
# about = "reset() after the first batch, which keeps the groups"
# raises = "AssertionError"
# match = "expected accuracies 1.0 and 0.0 for thresholds 0.5 and 0.9, got 1.0 and 1.0"
# ///
"""Two metrics of a collection have the same value, whatever is measured.

Symptom: metrics of one kind with different thresholds, ignored classes or n-grams, or own metrics with the same names of
states, give equal values from some run on. It depends on the first batch, such as that of Lightning's sanity check.
Silent.

Cause: `MetricCollection.update` compares the metrics' states after the first batch. Those whose states are equal then
form a compute group, of which only the first metric is updated; the others read its state. Nothing compares what else
the metrics' updates depend on, and neither `reset()` nor later batches dissolve a group.

Fix: none in a release. Pass `compute_groups=False`, or name the groups. Up to torchmetrics 1.6.1 only the first state
was compared; since 1.6.2 all are, and n-grams of BLEU are told apart, but not metrics whose states agree by chance.

Watch: no check sees it yet: one would have to compare how the metrics of a group were made.
"""

import sys

import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy

# In the first batch both thresholds give the right labels. In the second, 0.7 is right for a threshold of 0.5 and wrong
# for 0.9: accuracies 6 / 6 and 2 / 6, and without the first batch 4 / 4 and 0 / 4.
FIRST = torch.tensor([0.99, 0.01]), torch.tensor([1, 0])
SECOND = torch.tensor([0.7] * 4), torch.tensor([1] * 4)


def metrics():
    return {"low": BinaryAccuracy(threshold=0.5), "strict": BinaryAccuracy(threshold=0.9)}


def update(collection):
    collection.update(*FIRST)
    collection.update(*SECOND)
    return collection, 0.3333


def failing():
    return update(MetricCollection(metrics()))


def fixed():
    return update(MetricCollection(metrics(), compute_groups=False))


def named_groups():
    return update(MetricCollection(metrics(), compute_groups=[["low"], ["strict"]]))


def forward():
    collection = MetricCollection(metrics())
    collection(*FIRST)
    collection(*SECOND)
    return collection, 0.3333


def other_order():
    return update(MetricCollection([MetricCollection({name: metrics()[name]}) for name in ("strict", "low")]))


def after_reset():
    collection = MetricCollection(metrics())
    collection.update(*FIRST)
    collection.reset()
    collection.update(*SECOND)
    return collection, 0.0


VARIANTS = {v.__name__: v for v in (failing, fixed, named_groups, forward, other_order, after_reset)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    collection, strict = VARIANTS[variant]()
    got = {name: round(value.item(), 4) for name, value in collection.compute().items()}
    assert got == {"low": 1.0, "strict": strict}, (
        f"expected accuracies 1.0 and {strict} for thresholds 0.5 and 0.9, got {got['low']} and {got['strict']}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
