# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0042"
# title = "A checkpoint that rank 0 alone saves stops the training for ever"
# kind = "misuse"
# documented = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.trainer.trainer.Trainer.html"
# upstream.reports = ["https://github.com/ray-project/ray/issues/56997"]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/10947"]
# packages = ["lightning"]
# affected = ["lightning>=2.1"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# deadline = 45
#
# [tool.repro.variants.failing]
# about = "trainer.save_checkpoint under `if self.trainer.is_global_zero`"
# finds = ["ranks_wait_apart_saving"]
# ends = "hang"
#
# [tool.repro.variants.fixed]
# about = "every rank calls trainer.save_checkpoint, which writes on rank 0 alone"
# source = "https://github.com/ray-project/ray/issues/56997"
#
# [tool.repro.variants.weights_saved_by_torch]
# outcome = "passes"
# about = "torch.save of the state dict on rank 0: no collective in it"
#
# [tool.repro.variants.metric_logged]
# outcome = "fails"
# about = "self.log(..., sync_dist=True) on rank 0 alone"
# finds = ["ranks_wait_apart_logging"]
# affected = []
# claim = "logging belongs on rank 0"
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
#
# [tool.repro.variants.metric_logged_rank_zero_only]
# outcome = "passes"
# about = "self.log(..., sync_dist=True, rank_zero_only=True) on rank 0 alone: that argument switches the reduction off"
# source = "https://lightning.ai/docs/pytorch/stable/visualize/logging_advanced.html"
# ///
"""Work that is put behind `if rank == 0`, or `@rank_zero_only`, must not wait for the other ranks.

Symptom: under DDP on several processes training stands still at a save or a log, with no error until the process
group's timeout, 30 minutes by default; one process trains to its end.

Cause: from Lightning 2.1 on `Trainer.save_checkpoint` ends in `strategy.barrier`, and `self.log(..., sync_dist=True)`
reduces in every release: all ranks have to take part. Rank 0 waits there, while rank 1 goes on to the next batch and waits for rank 0 in the reduction of
the gradients. The documentation of `save_checkpoint` says that it "needs to be called on all processes".

Fix: call them on every rank; Lightning itself writes files on rank 0 alone. For rank 0 alone are `print`,
`torch.save` and loggers' own methods.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Training(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).mean()
        if batch_idx == 0:
            self.after_first(loss, os.path.join(self.trainer.default_root_dir, "first.ckpt"))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Failing(Training):
    def after_first(self, loss, path):
        if self.trainer.is_global_zero:
            self.trainer.save_checkpoint(path)


class Fixed(Training):
    def after_first(self, loss, path):
        self.trainer.save_checkpoint(path)


class WeightsSavedByTorch(Training):
    def after_first(self, loss, path):
        if self.trainer.is_global_zero:
            torch.save(self.state_dict(), path)


class MetricLogged(Training):
    def after_first(self, loss, path):
        if self.trainer.is_global_zero:
            self.log("loss", loss, sync_dist=True)


class MetricLoggedRankZeroOnly(Training):
    def after_first(self, loss, path):
        if self.trainer.is_global_zero:
            self.log("loss", loss, sync_dist=True, rank_zero_only=True)


VARIANTS = {
    "failing": Failing,
    "fixed": Fixed,
    "weights_saved_by_torch": WeightsSavedByTorch,
    "metric_logged": MetricLogged,
    "metric_logged_rank_zero_only": MetricLoggedRankZeroOnly,
}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "accelerator": accelerator,
            "strategy": strategy,
            "devices": 2,
            "max_epochs": 1,
            "logger": False,
            "enable_checkpointing": False,
        }
        trainer = Trainer(default_root_dir=folder, **options)
        trainer.fit(VARIANTS[variant](), DataLoader(torch.ones(8, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
