# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0106"
# title = "R2Score is wrong where targets are far from zero"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/1161",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1573",
#     "https://github.com/Lightning-AI/torchmetrics/issues/3077",
# ]
# upstream.related = ["https://github.com/pytorch/ignite/pull/3836"]
# packages = ["torchmetrics"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "float32 targets between 9997 and 10003"
# raises = "AssertionError"
# match = "expected R2 0.75, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "subtract one constant from predictions and targets, which does not change R2"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/3077"
#
# [tool.repro.variants.float64_state]
# outcome = "passes"
# about = "float64 inputs, and set_dtype(torch.float64) for the metric's sums"
#
# [tool.repro.variants.float64_inputs]
# outcome = "fails"
# about = "float64 inputs alone"
# affected = ["torchmetrics<1.5"]
# raises = "AssertionError"
# match = "expected R2 0.75, got 0.8438"
#
# [tool.repro.variants.double]
# outcome = "fails"
# about = "float64 inputs and the metric's double(), which a metric ignores on purpose"
# affected = ["torchmetrics<1.5"]
# raises = "AssertionError"
# match = "expected R2 0.75, got 0.8438"
#
# [tool.repro.variants.explained_variance]
# outcome = "fails"
# about = "ExplainedVariance, which has the same sums"
# ///
"""R2 of a good regression is 0, larger than 1, or very negative.

Symptom: `R2Score` and `ExplainedVariance` disagree with scikit-learn on temperatures in kelvin, energies, years, prices:
wherever the targets' mean is large compared with their spread. Silent.

Cause: the metrics keep the sum of the targets' squares and their sum, and subtract one from the other at the end. In
float32 the squares have lost what remains of that subtraction. A total that comes out as 0 counts as constant
targets, for which R2 is set to 0.

Fix: none in a release. Subtract a constant near the mean from both inputs, or keep the sums in float64: float64 inputs,
and up to torchmetrics 1.4 `set_dtype(torch.float64)`, too, as the sums were float32 whatever was added to them.

Watch: no check sees it, since what a metric makes of its targets is known to the metric alone.
"""

import sys

import torch
from torchmetrics import ExplainedVariance, R2Score

# The targets' deviations are -3, -1, 1 and 3, and the predictions have half of them: 1 - 5 / 20 = 0.75.
DEVIATIONS = torch.tensor([-3.0, -1.0, 1.0, 3.0])
TARGETS, PREDICTIONS = 10000 + DEVIATIONS, 10000 + DEVIATIONS / 2


def failing():
    return R2Score(), PREDICTIONS, TARGETS


def fixed():
    return R2Score(), PREDICTIONS - 10000, TARGETS - 10000


def float64_state():
    return R2Score().set_dtype(torch.float64), PREDICTIONS.double(), TARGETS.double()


def float64_inputs():
    return R2Score(), PREDICTIONS.double(), TARGETS.double()


def double():
    return R2Score().double(), PREDICTIONS.double(), TARGETS.double()


def explained_variance():
    return ExplainedVariance(), PREDICTIONS, TARGETS


VARIANTS = {v.__name__: v for v in (failing, fixed, float64_state, float64_inputs, double, explained_variance)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    metric, predictions, targets = VARIANTS[variant]()
    metric.update(predictions, targets)
    got = round(metric.compute().item(), 4)
    assert got == 0.75, f"expected R2 0.75, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
