# /// script
# dependencies = ["torch>=2.1", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0001"
# title = "The LR finder leaves logged results on the CPU"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19813",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19912",
# ]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/17334"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/19814"]
# packages = ["lightning"]
# affected = ["lightning>=2.1,<2.4"]
# requires = ["torch>=2.1"]
# exists = ["lightning>=2.1"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/17334"
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
#
# [tool.repro.variants.failing]
# about = "lr_find, then fit, with one Trainer"
# finds = ["collective_device_count", "crash"]
# raises = "RuntimeError"
# match = "No backend type associated with device type cpu"
# frames = ["logger_connector/result.py:compute"]
#
# [tool.repro.variants.fixed]
# about = "a fresh Trainer for the fit (or Lightning 2.4)"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19814"
#
# [tool.repro.variants.results_checked]
# outcome = "fails"
# about = "a check of every result's device before they are reduced: it names the count that stayed behind"
# raises = "RuntimeError"
# match = "training_step.loss.cumulated_batch_size is on cpu, the model on cuda:0"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/19813"
#
# [tool.repro.variants.results_moved]
# outcome = "passes"
# about = "the loop's results are moved to the module's device as the fit begins: the Trainer can be kept"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19814"
#
# [tool.repro.variants.refit]
# outcome = "fails"
# about = "no LR finder: two fits with one Trainer"
# finds = ["collective_device_count", "crash"]
#
# [tool.repro.variants.revalidate]
# outcome = "fails"
# about = "no LR finder: two validations with one Trainer"
# finds = ["collective_device_count", "crash"]
#
# [tool.repro.variants.finder_callback]
# outcome = "passes"
# about = "the LearningRateFinder callback, which searches inside the one fit"
#
# [tool.repro.variants.summed]
# outcome = "passes"
# about = "logged with reduce_fx='sum', which keeps no count of samples"
#
# [tool.repro.variants.unsynchronised]
# outcome = "passes"
# about = "logged without sync_dist: every rank sees its own mean"
# ///
"""A Trainer that has searched for a learning rate cannot reduce its logged means afterwards.

Symptom: `Tuner.lr_find` followed by `fit` on GPUs under DDP ends in `RuntimeError: No backend type associated with
device type cpu` when an epoch's results are reduced. Without the search the same fit succeeds.

Cause: the search ends in a teardown that moves the loop's `_ResultCollection` to the CPU and keeps its keys. From
Lightning 2.1 `_ResultCollection.log` moves a result to the value's device only when its key is new. The sum returns to
the device by itself (a 0-dim CPU tensor plus one on the device), but `cumulated_batch_size` is counted on the CPU, and
`compute` passes it to a process group that has a backend for the device only. The second run of any loop fails, with or
without a finder, at any world size. Moving the logged value does not help: the count is what is on the CPU.

Fix: Lightning 2.4 moves a result each time it is logged. Before: a fresh Trainer for the fit, or the callback, or move
the results of the loop yourself.

Apart: the first run of a Trainer succeeds, the second fails. With RPR-0019 (a CPU tensor is logged) and RPR-0020 (a
metric's state is on the CPU, the error comes from torchmetrics) the first run fails as well.
"""

import sys
import tempfile
from functools import partial

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import LearningRateFinder
from lightning.pytorch.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self, **options):
        super().__init__()
        self.layer, self.lr = nn.Linear(1, 1), 0.01
        self.options = {"on_step": False, "on_epoch": True, "sync_dist": True, **options}

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).mean()
        self.log("loss", loss, **self.options)
        return loss

    validation_step = training_step

    def train_dataloader(self):
        return DataLoader(torch.ones(8, 1), batch_size=2)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


class ModelThatChecksResults(Model):
    def on_train_epoch_end(self):
        for key, result in self.trainer.fit_loop._results.items():  # noqa: SLF001 - there is no public way
            for name in ("value", "cumulated_batch_size"):
                device = getattr(result, name).device
                if device != self.device:
                    raise RuntimeError(f"{key}.{name} is on {device}, the model on {self.device}")


class ModelThatMovesResults(Model):
    def on_train_start(self):
        self.trainer.fit_loop._results.to(self.device)  # noqa: SLF001


def failing(new_trainer, model=None):
    model, trainer = model or Model(), new_trainer()
    Tuner(trainer).lr_find(model, num_training=3, update_attr=False)
    trainer.fit(model)


def fixed(new_trainer):
    model = Model()
    Tuner(new_trainer()).lr_find(model, num_training=3, update_attr=False)
    new_trainer().fit(model)


def results_checked(new_trainer):
    failing(new_trainer, ModelThatChecksResults())


def results_moved(new_trainer):
    failing(new_trainer, ModelThatMovesResults())


def refit(new_trainer):
    model, trainer = Model(), new_trainer()
    trainer.fit(model)
    trainer.fit_loop.max_epochs = 2
    trainer.fit(model)


def revalidate(new_trainer):
    model, trainer = Model(), new_trainer()
    trainer.validate(model, model.train_dataloader())
    trainer.validate(model, model.train_dataloader())


def finder_callback(new_trainer):
    new_trainer(callbacks=[LearningRateFinder(num_training_steps=3, update_attr=False)]).fit(Model())


def summed(new_trainer):
    failing(new_trainer, Model(reduce_fx="sum"))


def unsynchronised(new_trainer):
    failing(new_trainer, Model(sync_dist=False))


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        fixed,
        results_checked,
        results_moved,
        refit,
        revalidate,
        finder_callback,
        summed,
        unsynchronised,
    )
}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:  # lr_find keeps its own checkpoint there
        options = {
            "accelerator": accelerator,
            "strategy": strategy,
            "devices": "auto",
            "max_epochs": 1,
            "logger": False,
            "enable_checkpointing": False,
        }
        VARIANTS[variant](partial(Trainer, default_root_dir=folder, **options))


if __name__ == "__main__":
    main(*sys.argv[1:])
