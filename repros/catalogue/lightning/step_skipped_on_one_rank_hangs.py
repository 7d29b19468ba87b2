# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0025"
# title = "A step that one rank skips with None leaves the others waiting for ever"
# kind = "limitation"
# documented = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/5243"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/19918"]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/5577"]
# packages = ["lightning"]
# affected = ["lightning<2.3"]
# exists = ["lightning<2.3"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19918"
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# deadline = 60
#
# [tool.repro.variants.failing]
# about = "training_step returns None for one batch of rank 1"
# finds = ["ranks_wait_apart_epoch"]
# requires = ["lightning<2.3"]
# ends = "hang"
#
# [tool.repro.variants.refused]
# outcome = "fails"
# about = "the same from Lightning 2.3 on: an error in place of the hang"
# affected = []
# requires = ["lightning>=2.3"]
# raises = "RuntimeError"
# match = "Skipping the `training_step` by returning None in distributed training is not supported"
#
# [tool.repro.variants.fixed]
# about = "instead of None, a loss that uses every parameter and changes none"
#
# [tool.repro.variants.agreed]
# outcome = "passes"
# about = "the ranks agree first, and all return None (refused, too, from Lightning 2.3 on)"
# requires = ["lightning<2.3"]
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/5243"
# ///
"""Skipping a batch by returning None works on one device and stops training for ever on several.

Symptom: under DDP training stands still without an error some time after `training_step` returned None on one rank,
mostly as the epoch ends; from Lightning 2.3 on `RuntimeError: Skipping the training_step by returning None in
distributed training is not supported`.

Cause: `_AutomaticOptimization` calls no backward for None, so this rank's DDP reducer reduces nothing. From there on
the others' gradients are reduced with those of its *next* step. At the end they wait for a reduction that this rank
never begins, while it waits for them in another collective: here the barrier of `_sync_ddp` for the epoch's logged
mean.

Fix: return a loss whose gradients are 0, so that the rank takes part. Lightning 2.3 cannot skip it either, but raises.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        if self.global_rank == 1 and batch_idx == 0:
            return self.skipped(batch)
        loss = self.layer(batch).mean()
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def skipped(self, batch):
        return None

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class ModelWithZeroLoss(Model):
    def skipped(self, batch):
        return self.layer(torch.zeros_like(batch)).mean() * 0.0


class ModelWithAgreement(Model):
    def training_step(self, batch, batch_idx):
        skip = self.global_rank == 1 and batch_idx == 0
        if self.all_gather(torch.tensor(float(skip), device=self.device)).any():
            return None
        return super().training_step(batch, batch_idx)


def failing():
    return Model()


def refused():
    return Model()


def fixed():
    return ModelWithZeroLoss()


def agreed():
    return ModelWithAgreement()


VARIANTS = {v.__name__: v for v in (failing, refused, fixed, agreed)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    trainer = Trainer(
        accelerator=accelerator, strategy=strategy, devices=2, max_epochs=1, logger=False, enable_checkpointing=False
    )
    trainer.fit(VARIANTS[variant](), DataLoader(torch.ones(8, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
