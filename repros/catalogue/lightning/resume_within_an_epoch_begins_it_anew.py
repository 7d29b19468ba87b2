# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0196"
# title = "A fit that resumes within an epoch begins the data of that epoch anew"
# kind = "limitation"
# documented = "https://lightning.ai/docs/pytorch/stable/common/checkpointing_intermediate.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/1182",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/11029",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18780",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19764",
#     "https://github.com/ecmwf/anemoi-core/issues/4",
#     "https://github.com/mosaicml/streaming/issues/880",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/19361",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/14579",
# ]
# packages = ["lightning"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "resume after three of eight batches, with a DataLoader"
# raises = "AssertionError"
# match = [
#     "expected the samples [3, 4, 5, 6, 7], got [0, 1, 2, 3, 4]",
#     "expected the samples [3, 4, 5, 6, 7], got [0, 1, 2, 3, 4, 5]",
# ]
#
# [tool.repro.variants.fixed]
# about = "a loader with state_dict and load_state_dict, which goes on from its place"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/11029"
# requires = ["lightning>=2.2"]
#
# [tool.repro.variants.by_hand]
# outcome = "passes"
# about = "such a loader, whose place the module saves and loads"
# ///
"""A resume in the middle of an epoch that trains on its first samples again and never on its last ones.

Symptom: a run that is interrupted often sees the begin of the data set more often than its end; with a time limit shorter
than an epoch it never sees the end. Lightning warns that it resumes "from a checkpoint that ended before the epoch ended"
and that the data loader is not resumable.

Cause: the checkpoint has the number of batches that were done, and the resumed epoch is shorter by it. No loader is told:
a DataLoader begins at its first sample, or draws a new order. The number is one too low, and the epoch one batch longer,
if the checkpoint is from the end of a batch and Lightning older than 2.5.

Fix: from Lightning 2.2 on a loader with `state_dict` and `load_state_dict`, such as torchdata's StatefulDataLoader, is
saved and loaded. Before, keep the place in the module's `on_save_checkpoint`, or save at the end of epochs only.

Watch: there is no check for it yet: a resumed epoch that is shorter than its loader is right.

Apart: RPR-0008 is the order of the first whole epoch after a resume.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(1, 1), []

    def training_step(self, batch, batch_idx):
        self.seen.append(int(batch))
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Loader(DataLoader):
    """Goes on from a place, as torchdata's StatefulDataLoader does."""

    begin = place = 0

    def __iter__(self):
        for self.place, batch in enumerate(super().__iter__(), 1):
            if self.place > self.begin:
                yield batch
        self.begin = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.begin = state["place"]


class Keeping(Model):
    def __init__(self, loader):
        super().__init__()
        self.loader = loader

    def on_save_checkpoint(self, checkpoint):
        checkpoint["place"] = self.loader.place

    def on_load_checkpoint(self, checkpoint):
        self.loader.begin = checkpoint["place"]


class Save(Callback):
    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == 3:
            trainer.save_checkpoint(self.path)


def run(new_trainer, path, new_loader, new_model=lambda loader: Model()):
    data = torch.arange(8.0).view(8, 1)
    loader = new_loader(data)
    new_trainer(callbacks=[Save(path)]).fit(new_model(loader), loader)
    loader = new_loader(data)
    model = new_model(loader)
    new_trainer().fit(model, loader, ckpt_path=path)
    return model.seen


def failing(new_trainer, path):
    return run(new_trainer, path, DataLoader)


def fixed(new_trainer, path):
    return run(new_trainer, path, Loader)


def by_hand(new_trainer, path):
    return run(new_trainer, path, Loader, Keeping)


VARIANTS = {v.__name__: v for v in (failing, fixed, by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer(**options):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=1, **options, barebones=True)

    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](new_trainer, os.path.join(folder, "epoch.ckpt"))
    assert got == [3, 4, 5, 6, 7], f"expected the samples [3, 4, 5, 6, 7], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
