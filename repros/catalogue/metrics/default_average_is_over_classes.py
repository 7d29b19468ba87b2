# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0117"
# title = "MulticlassAccuracy is a mean over classes, Accuracy one over samples"
# kind = "by design"
# documented = "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2320",
#     "https://github.com/microsoft/hi-ml/pull/671",
#     "https://github.com/awslabs/Renate/pull/314",
#     "https://github.com/OmicsML/CellPLM/issues/14",
#     "https://github.com/JishengBai/ICME2024ASC/issues/3",
# ]
# packages = ["torchmetrics"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "MulticlassAccuracy instead of Accuracy(task='multiclass')"
# raises = "AssertionError"
# match = "expected accuracy 0.75, 3 of 4 samples, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "average='micro'"
# source = "https://github.com/microsoft/hi-ml/pull/671"
#
# [tool.repro.variants.wrapper]
# outcome = "passes"
# contrast = true
# about = "Accuracy(task='multiclass'), whose default is average='micro'"
#
# [tool.repro.variants.functional]
# outcome = "fails"
# about = "functional.classification.multiclass_accuracy"
#
# [tool.repro.variants.functional_wrapper]
# outcome = "passes"
# contrast = true
# about = "functional.accuracy(task='multiclass')"
# ///
"""The accuracy changes when a metric is replaced by the class that its documentation names.

Symptom: `MulticlassAccuracy` and scikit-learn's `accuracy_score` differ where classes differ in size, and so do
`Accuracy(task="multiclass")` and `MulticlassAccuracy`. The same holds of F1, precision and recall. Silent.

Cause: the classes' default is `average="macro"`, the mean of the classes' recalls. The wrapper that chooses a class by
`task` passes `average="micro"`, the share of all samples.

Fix: name `average` wherever a metric is made.

Watch: no check tells it from a healthy program, since a mean over classes is what many want.
"""

import sys

import torch
from torchmetrics import Accuracy
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics.functional import accuracy
from torchmetrics.functional.classification import multiclass_accuracy

# Always class 0, for three samples of class 0 and one of class 1: 3 / 4 of the samples, (3 / 3 + 0 / 1) / 2 by class.
PREDICTIONS, TARGETS = torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 0, 1])


def failing():
    return MulticlassAccuracy(num_classes=2)


def fixed():
    return MulticlassAccuracy(num_classes=2, average="micro")


def wrapper():
    return Accuracy(task="multiclass", num_classes=2)


def functional():
    return lambda predictions, targets: multiclass_accuracy(predictions, targets, num_classes=2)


def functional_wrapper():
    return lambda predictions, targets: accuracy(predictions, targets, task="multiclass", num_classes=2)


VARIANTS = {v.__name__: v for v in (failing, fixed, wrapper, functional, functional_wrapper)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant]()(PREDICTIONS, TARGETS).item()
    assert got == 0.75, f"expected accuracy 0.75, 3 of 4 samples, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
