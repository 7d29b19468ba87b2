# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0124"
# title = "AUROC of large scores is 0.5, because their sigmoids are all 1"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2819",
#     "https://github.com/kkirchheim/pytorch-ood/pull/144",
#     "https://github.com/open-edge-platform/anomalib/issues/2337",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/torchmetrics/pull/3420",
#     "https://github.com/Lightning-AI/torchmetrics/pull/3438",
# ]
# packages = ["torchmetrics"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "scores from 97 to 100, the lowest for the only negative sample"
# raises = "AssertionError"
# match = "expected AUROC 1.0, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "all scores are divided by one constant, so that they lie in [0, 1]"
# source = "https://github.com/kkirchheim/pytorch-ood/pull/144"
#
# [tool.repro.variants.moved]
# outcome = "passes"
# about = "one constant is subtracted from all scores, so that no batch lies within [0, 1]"
#
# [tool.repro.variants.moved_into_the_interval]
# outcome = "fails"
# about = "another constant is subtracted, so that one batch lies within [0, 1] and gets no sigmoid"
# raises = "AssertionError"
# match = "expected AUROC 1.0, got 0.6667"
#
# [tool.repro.variants.double]
# outcome = "fails"
# about = "the scores in float64: the sigmoid of 37 and more is 1 there, too"
# claim = "more precision keeps the scores apart"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/2819"
#
# [tool.repro.variants.mean_of_each_batch]
# outcome = "fails"
# about = "the mean of each batch is subtracted, so that scores of different batches cannot be compared"
# raises = "AssertionError"
# match = "expected AUROC 1.0, got 0.8333"
# claim = "subtracting the mean in `update` does not change the order of the scores"
# source = "https://github.com/Lightning-AI/torchmetrics/pull/3420"
# ///
"""A metric that ranks scores says that a perfect detector guesses.

Symptom: AUROC 0.5, or an average precision that is the share of positives, though scikit-learn gives a good value for
the same scores: distances, energies, log-likelihoods and other scores that are not probabilities. Silent.

Cause: scores outside [0, 1] are taken for logits, and `update` applies a sigmoid. In float32 the sigmoid of everything
above 17 is exactly 1, in float64 above 37, so that all samples are tied.

Fix: none in a release. Scale the scores into [0, 1] by constants that are the same for all batches. Moving them to 0 is
enough only if no batch lies within [0, 1], where no sigmoid is applied (RPR-0120).

Watch: no check sees it, since what a metric makes of its scores is known to the metric alone.
"""

import sys

import torch
from torchmetrics.classification import BinaryAUROC

SCORES, LABELS = torch.tensor([97.0, 98.0, 99.0, 100.0]), torch.tensor([0, 1, 1, 1])


def failing():
    return SCORES.split(2)


def fixed():
    return (SCORES / 100).split(2)


def moved():
    return (SCORES - 98.5).split(2)


def moved_into_the_interval():
    # -2 and -1 become 0.12 and 0.27, 0 and 1 stay: the negative sample is above one of the three positive ones, 2 / 3.
    return (SCORES - 99).split(2)


def double():
    return SCORES.double().split(2)


def mean_of_each_batch():
    # -0.5 and 0.5 in both batches: the negative sample is tied with one of the three positive ones, (0.5 + 1 + 1) / 3.
    return [scores - scores.mean() for scores in SCORES.split(2)]


VARIANTS = {v.__name__: v for v in (failing, fixed, moved, moved_into_the_interval, double, mean_of_each_batch)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    metric = BinaryAUROC()
    for scores, target in zip(VARIANTS[variant](), LABELS.split(2)):
        metric.update(scores, target)
    got = round(metric.compute().item(), 4)
    assert got == 1.0, f"expected AUROC 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
