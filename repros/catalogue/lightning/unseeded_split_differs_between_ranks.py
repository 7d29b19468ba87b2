# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0128"
# title = "random_split in setup() gives each rank a split of its own"
# kind = "misuse"
# documented = "https://github.com/Lightning-AI/pytorch-lightning/issues/18638"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/7728",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18638",
#     "https://github.com/TensorAuto/OpenTau/pull/498",
#     "https://github.com/ClementiGroup/mlcg/pull/16",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/18651",
#     "https://github.com/Lightning-Universe/lightning-bolts/issues/140",
# ]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "random_split without a generator in LightningDataModule.setup"
# raises = "AssertionError"
# match = "samples that one rank trains on and another validates on: expected 0, got 6"
#
# [tool.repro.variants.fixed]
# about = "random_split with a seeded generator"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/18638"
#
# [tool.repro.variants.seeded_everywhere]
# outcome = "passes"
# about = "seed_everything before the fit, so that all ranks draw alike"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/7728"
# ///
"""Under DDP a random split in `setup` lets the model train on the data that it is validated with.

Symptom: the validation loss is too good; on one GPU it is worse. Silent.

Cause: each rank is a process that runs `setup` itself, and draws the split from a generator that is seeded by chance.
`DistributedSampler` then hands out positions of lists that differ: what one rank keeps for validation is in the
training set of another. A seed that differs by rank does the same, as that of accelerate's
`set_seed(device_specific=True)`.

Fix: give `random_split` a seeded generator, or call `seed_everything` first, with one seed on all ranks.

Watch: `share_of_other_data` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer, seed_everything
from torch import nn
from torch.utils.data import DataLoader, random_split

RANK = int(os.environ.get("LOCAL_RANK", "0"))


class DataModule(LightningDataModule):
    def __init__(self, generator=None):
        super().__init__()
        self.generator = generator or torch.default_generator

    def setup(self, stage):
        self.parts = random_split(range(8), [4, 4], generator=self.generator)

    def train_dataloader(self):
        return DataLoader(self.parts[0])

    def val_dataloader(self):
        return DataLoader(self.parts[1])


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def on_train_start(self):
        train, validation = (self.all_gather(torch.tensor(p.indices)) for p in self.trainer.datamodule.parts)
        leaked = set(train.flatten().tolist()) & set(validation.flatten().tolist())
        what = "samples that one rank trains on and another validates on"
        assert not leaked, f"{what}: expected 0, got {len(leaked)}"

    def training_step(self, batch, batch_idx):
        return self.layer(batch.float().view(-1, 1)).mean()

    def validation_step(self, batch, batch_idx):
        self.training_step(batch, batch_idx)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return DataModule()


def fixed():
    return DataModule(torch.Generator().manual_seed(0))


def seeded_everywhere():
    seed_everything(0)
    return DataModule()


VARIANTS = {v.__name__: v for v in (failing, fixed, seeded_everywhere)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    torch.manual_seed(RANK)  # in place of the seed by chance that each process has, so that each run is the same
    data = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, max_epochs=1, barebones=True)
    trainer.fit(Model(), datamodule=data)


if __name__ == "__main__":
    main(*sys.argv[1:])
