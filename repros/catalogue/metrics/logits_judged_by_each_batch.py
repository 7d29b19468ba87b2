# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0120"
# title = "torchmetrics decides for each batch whether its scores are logits"
# kind = "by design"
# documented = "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/1604",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1989",
#     "https://github.com/Lightning-AI/torchmetrics/issues/2195",
#     "https://github.com/Lightning-AI/torchmetrics/issues/2329",
#     "https://github.com/Lightning-AI/torchmetrics/issues/3179",
#     "https://github.com/Lightning-AI/torchmetrics/issues/3269",
#     "https://github.com/open-edge-platform/anomalib/issues/2003",
# ]
# packages = ["torchmetrics"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "BinaryAccuracy updated with one logit at a time"
# raises = "AssertionError"
# match = "expected 1.0 as for all logits at once, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "the sigmoid is taken before each update"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/2195"
#
# [tool.repro.variants.labels]
# outcome = "passes"
# about = "labels instead of scores: the sign of each logit, as an integer"
# source = "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html"
#
# [tool.repro.variants.threshold_of_zero]
# outcome = "fails"
# about = "threshold=0.0, where logits change their label"
# raises = "AssertionError"
# match = "expected 1.0 as for all logits at once, got 0.75"
# claim = "a threshold of 0 separates logits"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/391"
#
# [tool.repro.variants.ranked]
# outcome = "fails"
# about = "BinaryAUROC, which asks for nothing but the order of the scores"
# raises = "AssertionError"
# match = "expected 1.0 as for all logits at once, got 0.6667"
#
# [tool.repro.variants.at_once]
# outcome = "passes"
# contrast = true
# about = "all logits in one update"
# ///
"""A classification metric of logits depends on how the samples are divided into batches.

Symptom: accuracy, AUROC, curves and F1 scores change with the batch size and differ from scikit-learn's. Small batches
and models at the beginning of a training suffer most. Silent.

Cause: `update` takes scores for logits, and applies a sigmoid, if any value of this batch is outside [0, 1]. A batch
whose logits happen to lie in [0, 1] is taken for probabilities as it is, and its scores are then compared with those
of other batches.

Fix: hand over probabilities, so call `sigmoid` (or `softmax`) before `update`, or labels where no scores are needed.

Watch: no check sees it, since what a metric makes of its scores is known to the metric alone.
"""

import sys

import torch
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

# Every label is the sign of its logit, so that accuracy and AUROC are 1. The sigmoid of -1 is 0.27. In batches of one,
# 0.2 and 0.4 stay what they are: both are below the threshold of 0.5, and 0.2 is below 0.27.
LOGITS, LABELS = torch.tensor([-1.0, 0.2, 0.4, 2.0]), torch.tensor([0, 1, 1, 1])


def failing():
    return BinaryAccuracy(), LOGITS.split(1)


def fixed():
    return BinaryAccuracy(), LOGITS.sigmoid().split(1)


def labels():
    return BinaryAccuracy(), (LOGITS > 0).int().split(1)


def threshold_of_zero():
    return BinaryAccuracy(threshold=0.0), LOGITS.split(1)


def ranked():
    return BinaryAUROC(), LOGITS.split(1)


def at_once():
    return BinaryAccuracy(), [LOGITS]


VARIANTS = {v.__name__: v for v in (failing, fixed, labels, threshold_of_zero, ranked, at_once)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    metric, batches = VARIANTS[variant]()
    for scores, target in zip(batches, LABELS.split(len(batches[0]))):
        metric.update(scores, target)
    got = round(metric.compute().item(), 4)
    assert got == 1.0, f"expected 1.0 as for all logits at once, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
