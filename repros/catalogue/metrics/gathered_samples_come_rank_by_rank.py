# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0123"
# title = "all_gather returns the samples rank by rank, with repeated ones"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#all-gather"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/702",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12227",
#     "https://github.com/open-mmlab/mmpretrain/issues/173",
# ]
# upstream.related = ["https://github.com/huggingface/transformers/pull/4243"]
# packages = ["lightning"]
# home = "2024-03"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "five samples on two ranks, gathered and flattened"
# raises = "AssertionError"
# match = "expected the samples [0, 1, 2, 3, 4], got [0, 2, 4, 1, 3, 0]"
#
# [tool.repro.variants.fixed]
# about = "take the ranks in turn, and cut what is more than the data set has"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/702"
#
# [tool.repro.variants.cat_metric]
# outcome = "fails"
# about = "torchmetrics' CatMetric, which gathers by itself"
#
# [tool.repro.variants.cut_only]
# outcome = "fails"
# about = "cut to the length of the data set, and left in this order"
# raises = "AssertionError"
# match = "expected the samples [0, 1, 2, 3, 4], got [0, 2, 4, 1, 3]"
#
# [tool.repro.variants.numbered]
# outcome = "passes"
# about = "gather the samples' numbers, too, and sort by them"
# ///
"""Predictions that were gathered from all ranks belong to other labels than those beside them.

Symptom: a metric on gathered predictions and the labels of the data set is that of guessing on several devices and right
on one; there are up to world size - 1 predictions more than samples. Silent where lengths happen to agree.

Cause: `DistributedSampler` deals the samples out in turn: rank 0 has 0, 2, 4 and rank 1 has 1, 3, and then 0 again,
since all ranks must have as many. `all_gather` puts the ranks' results one after the other.

Fix: transpose ranks and samples and cut at the length of the data set, which holds if the loader does not shuffle. Or
gather the labels, or the samples' numbers, with the predictions.

Watch: no check sees it, since in which order gathered samples are used is known to the program alone.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader
from torchmetrics import CatMetric


class Model(LightningModule):
    """A model whose predictions are the samples, so that their order is seen."""

    def __init__(self, gather):
        super().__init__()
        self.gather, self.seen = gather, []

    def validation_step(self, batch, batch_idx):
        self.seen.append(batch)

    def on_validation_epoch_end(self):
        got = self.gather(self, torch.cat(self.seen)).tolist()
        assert got == [0, 1, 2, 3, 4], f"expected the samples [0, 1, 2, 3, 4], got {got}"


def failing(model, samples):
    return model.all_gather(samples).flatten()


def fixed(model, samples):
    return model.all_gather(samples).T.flatten()[:5]  # of the shape (ranks, samples of a rank)


def cat_metric(model, samples):
    metric = CatMetric()
    metric.update(samples)
    return metric.compute().int()


def cut_only(model, samples):
    return model.all_gather(samples).flatten()[:5]


def numbered(model, samples):
    numbers = torch.arange(len(samples)) * model.trainer.world_size + model.global_rank  # the last is 5 for sample 0
    gathered = model.all_gather(samples).flatten()
    return gathered[model.all_gather(numbers).flatten().argsort()][:5]


VARIANTS = {v.__name__: v for v in (failing, fixed, cat_metric, cut_only, numbered)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, logger=False)
    trainer.validate(Model(VARIANTS[variant]), DataLoader(torch.arange(5), batch_size=2), verbose=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
