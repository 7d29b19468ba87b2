# /// script
# dependencies = ["torch>=2.1", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0019"
# title = "A CPU tensor that is logged with sync_dist cannot be reduced"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/18803"]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/17334"]
# packages = ["lightning"]
# affected = ["lightning>=2.1"]
# requires = ["torch>=2.1"]
# exists = ["lightning<1.4 or lightning>=2.1"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/17334"
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
#
# [tool.repro.variants.failing]
# about = "a tensor made without a device is logged with sync_dist=True"
# finds = ["collective_device_logged", "crash"]
# raises = "RuntimeError"
# match = "No backend type associated with device type cpu"
# frames = ["logger_connector/result.py:compute", "logger_connector/result.py:update"]
#
# [tool.repro.variants.fixed]
# about = "the tensor is made on self.device"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/18803"
#
# [tool.repro.variants.number]
# outcome = "passes"
# about = "a plain number, which LightningModule.log itself turns into a tensor on the device"
#
# [tool.repro.variants.unsynchronised]
# outcome = "passes"
# about = "logged without sync_dist: every rank sees its own mean"
#
# [tool.repro.variants.both_backends]
# outcome = "fails"
# about = "a process group that has Gloo for the CPU beside the device's own backend"
# raises = "RuntimeError"
# match = ["Cannot use ReduceOp.AVG with Gloo", "result type Float can't be cast to the desired output type Long"]
# claim = "with the backend cpu:gloo,cuda:nccl CPU tensors are reduced, too"
# source = "https://pytorch.org/docs/stable/distributed.html"
# ///
"""Logging a CPU tensor under DDP on GPUs ends the run when its mean is reduced.

Symptom: `RuntimeError: No backend type associated with device type cpu` in the first step or at the end of the first
epoch, after an upgrade to Lightning 2.1.

Cause: until Lightning 2.0 `_ResultCollection.log` moved every tensor to the module's device. From 2.1 a result stays
where its value is, and `_ResultMetric.compute` passes a CPU tensor to `all_reduce` of a process group that has a
backend for GPUs only. No release checks for this.

Fix: make the tensor on `self.device`, or log a number. Giving the group a CPU backend replaces the error with another:
`_sync_ddp` asks for an average unless the backend is called `gloo`, and Gloo has no average, or none for the integer
count.

Apart: here the logged value is on the CPU, from the first run on. In RPR-0001 it is on the device; only the count kept
beside it is on the CPU, in a second run of one Trainer.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.distributed import Backend
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self, value, sync_dist=True):
        super().__init__()
        self.layer, self.value, self.sync_dist = nn.Linear(1, 1), value, sync_dist

    def training_step(self, batch, batch_idx):
        self.log("score", self.value(self.device), on_step=False, on_epoch=True, sync_dist=self.sync_dist)
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(strategy, accelerator):
    return Model(lambda device: torch.tensor(0.5)), strategy


def fixed(strategy, accelerator):
    return Model(lambda device: torch.tensor(0.5, device=device)), strategy


def number(strategy, accelerator):
    return Model(lambda device: 0.5), strategy


def unsynchronised(strategy, accelerator):
    return Model(lambda device: torch.tensor(0.5), sync_dist=False), strategy


def both_backends(strategy, accelerator):
    backend = f"cpu:gloo,{accelerator}:{Backend.default_device_backend_map[accelerator]}"  # cpu:gloo,cuda:nccl
    return Model(lambda device: torch.tensor(0.5)), DDPStrategy(process_group_backend=backend)


VARIANTS = {v.__name__: v for v in (failing, fixed, number, unsynchronised, both_backends)}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, strategy = VARIANTS[variant](strategy, accelerator)
    trainer = Trainer(
        accelerator=accelerator,
        strategy=strategy,
        devices="auto",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
    )
    trainer.fit(model, DataLoader(torch.ones(4, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
