# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0008"
# title = "The first epoch after a resume repeats the order of epoch 0"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/21938"]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/20775"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21941",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21960",
# ]
# packages = ["lightning"]
# affected = ["lightning>=2.5.3"]
# home = "2026-07"
# strategies = ["ddp"]
# silent = true
# finds = ["epoch_set_too_late"]
#
# [tool.repro.variants.failing]
# about = "resume at epoch 1 with a loader worker"
# raises = "AssertionError"
# match = "epoch 1: expected the order [5, 4, 2, 6, 7, 3, 1, 0], got [4, 0, 7, 3, 2, 5, 1, 6]"
#
# [tool.repro.variants.fixed]
# about = "without loader workers"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21938"
#
# [tool.repro.variants.uninterrupted]
# outcome = "passes"
# contrast = true
# about = "both epochs in one fit, with a loader worker"
# ///
"""A resumed run with loader workers trains its first epoch on epoch 0's permutation.

Symptom: whatever epoch a checkpoint was taken at, the first epoch after it visits the samples in the order of
epoch 0; with `limit_train_batches` each restart trains on the same part of the data. Silent.

Cause: `_FitLoop.setup_data` makes the loader's iterator before `on_advance_start` calls `set_epoch` on the sampler. A
loader with workers draws its first indices as soon as its iterator is made, and its sampler draws the whole
permutation with the first. Up to Lightning 2.5.2 the iterator was made anew on a resume, which hid this.

Fix: none in a release. Use `num_workers=0`.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

DATA = torch.arange(8.0).view(8, 1)


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.order = nn.Linear(1, 1), {}

    def training_step(self, batch, batch_idx):
        self.order.setdefault(self.current_epoch, []).append(int(batch))
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(new_trainer, path, num_workers=1):
    loader = DataLoader(DATA, shuffle=True, num_workers=num_workers)
    first = new_trainer(max_epochs=1)
    first.fit(Model(), loader)
    first.save_checkpoint(path)
    model = Model()
    new_trainer(max_epochs=2).fit(model, loader, ckpt_path=path)
    return model.order


def fixed(new_trainer, path):
    return failing(new_trainer, path, num_workers=0)


def uninterrupted(new_trainer, path):
    model = Model()
    new_trainer(max_epochs=2).fit(model, DataLoader(DATA, shuffle=True, num_workers=1))
    return model.order


VARIANTS = {v.__name__: v for v in (failing, fixed, uninterrupted)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer(max_epochs):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=max_epochs, barebones=True)

    with tempfile.TemporaryDirectory() as folder:
        order = VARIANTS[variant](new_trainer, os.path.join(folder, "epoch.ckpt"))
    sampler = DistributedSampler(DATA, num_replicas=1, rank=0, seed=0)  # as Lightning makes it
    sampler.set_epoch(1)
    expected = list(sampler)
    assert order[1] == expected, f"epoch 1: expected the order {expected}, got {order[1]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
