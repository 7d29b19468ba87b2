# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0110"
# title = "MinMaxMetric forgets its minimum and maximum in a checkpoint"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/torchmetrics/issues/3323"]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/torchmetrics/pull/3389"]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/4195"]
# packages = ["torchmetrics"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "accuracies 1.0 and 0.5, and a checkpoint between them"
# raises = "AssertionError"
# match = "expected the maximum 1.0, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "a subclass that keeps the two in its extra state"
#
# [tool.repro.variants.persistent]
# outcome = "fails"
# about = "persistent(True), which concerns the states of add_state alone"
# claim = "persistent(True) makes the metric's states part of the state_dict"
# source = "https://lightning.ai/docs/torchmetrics/stable/references/metric.html"
#
# [tool.repro.variants.max_metric]
# outcome = "passes"
# about = "MaxMetric with persistent(True), updated with each accuracy"
#
# [tool.repro.variants.not_persistent]
# outcome = "fails"
# about = "MaxMetric as it is: metrics are not in a state_dict unless asked for"
#
# [tool.repro.variants.uninterrupted]
# outcome = "passes"
# contrast = true
# about = "without a checkpoint"
# ///
"""The best value so far is that since the last resume.

Symptom: after a resume `MinMaxMetric` gives minimum and maximum of the epochs since then. Loading raises nothing, since
the checkpoint has no key for what is missing. Silent.

Cause: `min_val` and `max_val` are plain attributes, no states that `add_state` registers and no buffers, so
that no `state_dict` has them, `persistent(True)` or not. States of other metrics are left out of a `state_dict` by
default, too; for these `persistent(True)` helps.

Fix: merged after torchmetrics 1.9. Before: keep the two in `get_extra_state` and `set_extra_state`, or use `MaxMetric`
and `MinMetric` with `persistent(True)`.

Watch: no check tells it from a healthy program, since metrics are left out of checkpoints on purpose, too.
"""

import io
import sys

import torch
from torchmetrics import MaxMetric, MinMaxMetric
from torchmetrics.classification import BinaryAccuracy

BOTH, HALF = torch.tensor([1, 1]), torch.tensor([1, 0])  # accuracies 1.0 and 0.5


class MinMax:
    """The metric as a training uses it: one accuracy for each epoch."""

    def __init__(self, cls=MinMaxMetric, persistent=False):
        self.metric = cls(BinaryAccuracy())
        self.metric.persistent(persistent)

    def epoch(self, targets):
        self.metric.update(torch.tensor([1, 1]), targets)
        maximum = self.metric.compute()["max"].item()
        self.metric.reset()
        return maximum


class KeptMinMaxMetric(MinMaxMetric):
    def get_extra_state(self):
        return torch.stack([self.min_val, self.max_val])

    def set_extra_state(self, state):
        self.min_val, self.max_val = state


class Max:
    def __init__(self, persistent):
        self.metric = MaxMetric()
        self.metric.persistent(persistent)

    def epoch(self, targets):
        self.metric.update((targets == 1).float().mean())
        return self.metric.compute().item()


def resumed(new):
    before = new()
    before.epoch(BOTH)
    file = io.BytesIO()
    torch.save(before.metric.state_dict(), file)
    after = new()
    after.metric.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    return after.epoch(HALF)


def failing():
    return resumed(MinMax)


def fixed():
    return resumed(lambda: MinMax(KeptMinMaxMetric))


def persistent():
    return resumed(lambda: MinMax(persistent=True))


def max_metric():
    return resumed(lambda: Max(persistent=True))


def not_persistent():
    return resumed(lambda: Max(persistent=False))


def uninterrupted():
    metric = MinMax()
    metric.epoch(BOTH)
    return metric.epoch(HALF)


VARIANTS = {v.__name__: v for v in (failing, fixed, persistent, max_metric, not_persistent, uninterrupted)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant]()
    assert got == 1.0, f"expected the maximum 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
