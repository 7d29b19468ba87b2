# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0198"
# title = "Lightning leaves the validation out if an iterable data set ends before its length"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19624",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/10290",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/2429",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/2675",
#     "https://github.com/Lightning-AI/litData/issues/772",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21552"]
# packages = ["lightning"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "two workers with three samples each, in batches of two, and drop_last"
# raises = "AssertionError"
# match = "expected 2 validations in 2 epochs, got 0"
#
# [tool.repro.variants.fixed]
# about = "a data set without __len__"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/2429"
#
# [tool.repro.variants.one_worker]
# outcome = "passes"
# about = "one worker, which drops no more than the loader's length says"
#
# [tool.repro.variants.rest_kept]
# outcome = "passes"
# about = "drop_last=False, with one batch more than the loader's length"
#
# [tool.repro.variants.limited]
# outcome = "passes"
# about = "limit_train_batches: the number of batches that come"
# ///
"""A validation that never runs, since the epoch ends one batch early.

Symptom: no validation at all, no sample of it, no "val_loss" to monitor, while the training goes on for all epochs. It
depends on the number of samples, workers and the batch size. There is no error; Lightning warns that `__len__` of an
IterableDataset could be inaccurate with several workers.

Cause: a loader over an IterableDataset takes its length from the data set's `__len__`. Each worker makes batches of its
own part and with `drop_last` drops its own rest, so fewer batches come than the length says, even if `__len__` is right.
The epoch then ends with StopIteration instead of at its last batch, and Lightning asks whether to validate only after a
batch.

Fix: none in a release. Leave `__len__` out, or give the number of batches that come as `limit_train_batches`. Other
data sets that promise more than they yield, such as shards of a web data set, meet the same.

Watch: `epoch_cut_short` finds it, whatever has cut the epoch short (as RPR-0027 does), and so cannot name it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        return iter(torch.arange(6.0).view(6, 1)[worker.id :: worker.num_workers])


class Sized(Stream):
    def __len__(self):
        return 6


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.validations = nn.Linear(1, 1), 0

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def validation_step(self, batch, batch_idx):
        self.validations += 1

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return DataLoader(Sized(), 2, num_workers=2, drop_last=True), {}


def fixed():
    return DataLoader(Stream(), 2, num_workers=2, drop_last=True), {}


def one_worker():
    return DataLoader(Sized(), 2, num_workers=1, drop_last=True), {}


def rest_kept():
    return DataLoader(Sized(), 2, num_workers=2), {}


def limited():
    return failing()[0], {"limit_train_batches": 2}


VARIANTS = {v.__name__: v for v in (failing, fixed, one_worker, rest_kept, limited)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    loader, options = VARIANTS[variant]()
    trainer = Trainer(
        accelerator=accelerator,
        strategy=strategy,
        devices=1,
        max_epochs=2,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    model = Model()
    trainer.fit(model, loader, DataLoader(torch.ones(1, 1)))
    got = model.validations
    assert got == 2, f"expected 2 validations in 2 epochs, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
