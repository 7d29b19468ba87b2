# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0015"
# title = "A custom sampler's set_epoch is never called under DDP"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/21454"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21456"]
# packages = ["lightning"]
# affected = ["lightning<2.6.1"]
# home = "2023-12"
# strategies = ["ddp"]
# silent = true
# finds = ["epoch_not_set"]
#
# [tool.repro.variants.failing]
# about = "a sampler with set_epoch, which Lightning wraps for DDP"
# raises = "AssertionError"
# match = "expected the sampler's epochs [0, 1], got [0, 0]"
#
# [tool.repro.variants.fixed]
# about = "the module keeps its sampler and calls set_epoch for the next epoch in on_train_epoch_end"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21454"
#
# [tool.repro.variants.unwrapped]
# outcome = "passes"
# about = "use_distributed_sampler=False: the sampler is not wrapped and must split the data between ranks itself"
# ///
"""A sampler that shuffles by epoch visits the same order in every epoch once DDP is on.

Symptom: with one process each epoch has its own order; under DDP all epochs have that of epoch 0. Silent.

Cause: for DDP Lightning wraps a custom sampler in `DistributedSamplerWrapper` and calls the wrapper's `set_epoch` each
epoch. The wrapper inherits that from `DistributedSampler`, which stores the epoch for its own shuffle and does not pass
it to the wrapped sampler.

Fix: Lightning 2.6.1 passes it on. Before: call `set_epoch` yourself, or keep the wrapper off.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, Sampler


class ByEpoch(Sampler):
    def __init__(self):
        self.epoch, self.epochs = 0, []

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        self.epochs.append(self.epoch)
        return iter([0, 1] if self.epoch % 2 == 0 else [1, 0])

    def __len__(self):
        return 2


class Model(LightningModule):
    def __init__(self, sampler):
        super().__init__()
        self.layer, self.sampler = nn.Linear(1, 1), sampler

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class TellingModel(Model):
    def on_train_epoch_end(self):
        self.sampler.set_epoch(self.current_epoch + 1)


def failing(sampler):
    return Model(sampler), {}


def fixed(sampler):
    return TellingModel(sampler), {}


def unwrapped(sampler):
    return Model(sampler), {"use_distributed_sampler": False}


VARIANTS = {v.__name__: v for v in (failing, fixed, unwrapped)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sampler = ByEpoch()
    model, options = VARIANTS[variant](sampler)
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=2, barebones=True, **options)
    trainer.fit(model, DataLoader(torch.ones(2, 1), sampler=sampler))
    epochs = sampler.epochs[-2:]
    assert epochs == [0, 1], f"expected the sampler's epochs [0, 1], got {epochs}"


if __name__ == "__main__":
    main(*sys.argv[1:])
