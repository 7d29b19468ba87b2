# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0125"
# title = "sync_dist averages different metrics where ranks log other names"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#log"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19106",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20946",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21409",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/19917",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21434",
#     "https://github.com/mosaicml/composer/issues/2513",
#     "https://github.com/EvolvingLMMs-Lab/lmms-eval/pull/1089",
# ]
# packages = ["lightning"]
# home = "2025-11"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "a score for each class, logged by the rank that has met it"
# raises = "AssertionError"
# match = [
#     "class_0: expected 1.0, the score of rank 0, got 50.5",
#     "class_1: expected 100.0, the score of rank 1, got 50.5",
# ]
#
# [tool.repro.variants.fixed]
# about = "a metric object for each class, logged by all ranks in one order, whether they have met the class or not"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19917"
#
# [tool.repro.variants.other_order]
# outcome = "fails"
# about = "the same two names on both ranks, in another order"
# raises = "AssertionError"
# match = "class_0: expected 1.0, the score of rank 0, got 50.5"
#
# [tool.repro.variants.sorted_names]
# outcome = "passes"
# about = "the same two names, sorted"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20946"
#
# [tool.repro.variants.absent_is_nan]
# outcome = "fails"
# about = "both names on both ranks, NaN for a class that the rank has not met"
# raises = "AssertionError"
# match = "class_0: expected 1.0, the score of rank 0, got nan"
# ///
"""Two metrics with very different values are logged as equal.

Symptom: with several devices metrics for single classes, tasks or data sources read as mixtures of each other. With
NCCL a run hangs if the numbers of metrics differ. Silent with equal numbers.

Cause: `sync_dist=True` reduces one value after the other in the order in which a rank first logged the names. A
collective knows no names: the first value of one rank is averaged with the first of the other. Lightning documents
that all ranks must log the same names, and does not check it.

Fix: log the same names on all ranks, in one order. Where a rank may have nothing to log, log a metric object, whose
state then counts no samples; NaN would spread to all ranks.

Watch: no check sees it yet: one would have to compare the names that the ranks log.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric

SCORES = {"class_0": 1.0, "class_1": 100.0}  # class 0 is met on rank 0, class 1 on rank 1


class Model(LightningModule):
    def __init__(self, log):
        super().__init__()
        self.log_scores = log
        self.means = nn.ModuleDict({name: MeanMetric() for name in SCORES})

    def validation_step(self, batch, batch_idx):
        self.log_scores(self, f"class_{self.global_rank}")


def failing(model, met):
    model.log(met, SCORES[met], sync_dist=True)


def fixed(model, met):
    model.means[met].update(SCORES[met])
    for name, mean in model.means.items():
        model.log(name, mean)


def other_order(model, met):
    for name in sorted(SCORES, reverse=model.global_rank == 1):
        model.log(name, SCORES[name], sync_dist=True)


def sorted_names(model, met):
    for name in sorted(SCORES):
        model.log(name, SCORES[name], sync_dist=True)


def absent_is_nan(model, met):
    for name in sorted(SCORES):
        model.log(name, SCORES[name] if name == met else torch.nan, sync_dist=True)


VARIANTS = {v.__name__: v for v in (failing, fixed, other_order, sorted_names, absent_is_nan)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, logger=False)
    [got] = trainer.validate(Model(VARIANTS[variant]), DataLoader(torch.ones(2)), verbose=False)
    for name, value in sorted(got.items()):
        expected = SCORES[name]
        assert value == expected, f"{name}: expected {expected}, the score of rank {name[-1]}, got {value}"


if __name__ == "__main__":
    main(*sys.argv[1:])
