# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0050"
# title = "A resumed fit begins an iterable dataset twice"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19427"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/20775"]
# packages = ["lightning"]
# affected = ["lightning<2.0.8 or lightning>=2.1,<2.5.3"]
# home = "2023-12"
# silent = true
# finds = ["stream_begun_twice"]
#
# [tool.repro.variants.failing]
# about = "resume at epoch 1 with a dataset that counts how often it is begun"
# raises = "AssertionError"
# match = "expected 1 iteration, got 2"
#
# [tool.repro.variants.fixed]
# about = "the same two epochs in one fit"
# ///
"""A fit that goes on from a checkpoint calls `__iter__` of its dataset twice for the first epoch.

Symptom: after a resume, a dataset that remembers its position has lost the samples that the first iterator read, and
one that shuffles by the number of its epoch is an epoch ahead. There is no error.

Cause: when a fit is resumed, `_FitLoop.setup_data` and the start of the epoch each make an iterator of the loader.
Measured on Lightning 2.0.3 to 2.0.7 and again from 2.1.0 on; 2.0.8 and 2.0.9 are free
of it, and 2.0.0 to 2.0.2 could not be imported.

Fix: Lightning 2.5.3 makes one (and brings RPR-0008 with it). Before: a dataset that keeps its position in the
checkpoint and not in the iterator.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    begun = 0

    def __iter__(self):
        self.begun += 1
        return iter(torch.ones(4, 1))


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def failing(new_trainer, path):
    first = new_trainer(max_epochs=1)
    first.fit(Model(), DataLoader(Stream()))
    first.save_checkpoint(path)
    stream = Stream()
    new_trainer(max_epochs=2).fit(Model(), DataLoader(stream), ckpt_path=path)
    return stream.begun  # for the one epoch that is left


def fixed(new_trainer, path):
    stream = Stream()
    new_trainer(max_epochs=2).fit(Model(), DataLoader(stream))
    return stream.begun - 1  # without that of the first epoch


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer(**options):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options, barebones=True)

    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](new_trainer, os.path.join(folder, "epoch.ckpt"))
    assert got == 1, f"expected 1 iteration, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
