# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0010"
# title = "AsyncCheckpointIO stores the weights of a later step"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/20953"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21079"]
# packages = ["lightning"]
# affected = ["lightning<2.5.4"]
# exists = ["lightning>=1.7"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/13658"
# home = "2023-12"
# silent = true
# finds = ["saved_later_weights"]
#
# [tool.repro.variants.failing]
# about = "AsyncCheckpointIO, and a disk slower than two training steps"
# raises = "AssertionError"
# match = "the checkpoint of step 1: expected weight -1.0, got -3.0"
#
# [tool.repro.variants.fixed]
# about = "the tensors are cloned before they are handed to the thread (as Lightning 2.5.4 does)"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/21079"
#
# [tool.repro.variants.synchronous]
# outcome = "passes"
# about = "the same disk without AsyncCheckpointIO"
# ///
"""A checkpoint that is written by a thread holds what the weights became while it waited.

Symptom: checkpoints of AsyncCheckpointIO hold weights of later steps than they say, or of several steps. Silent.

Cause: a state dict refers to the live parameters. `AsyncCheckpointIO.save_checkpoint` passed it to its thread uncopied,
and the optimizer updated those tensors in place before the thread stored them.

Fix: Lightning 2.5.4 clones every tensor in the caller's thread. Before: clone in a subclass, or write synchronously.
"""

import os
import sys
import tempfile
import threading

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins import AsyncCheckpointIO
from torch import nn
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader


class SlowDisk(TorchCheckpointIO):
    """A disk that is not ready before the last step is done."""

    def __init__(self, ready):
        super().__init__()
        self.ready = ready

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        self.ready.wait()
        super().save_checkpoint(checkpoint, path, storage_options)


class CloningAsyncCheckpointIO(AsyncCheckpointIO):
    def save_checkpoint(self, checkpoint, path, storage_options=None):
        cloned = tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, checkpoint)
        super().save_checkpoint(cloned, path, storage_options)


class Model(LightningModule):
    """A model with output w: starting at 0, with learning rate 1, w is -n after n steps."""

    def __init__(self, path, ready):
        super().__init__()
        self.layer, self.path, self.ready = nn.Linear(1, 1, bias=False), path, ready
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx == 0:
            self.trainer.save_checkpoint(self.path)
        if batch_idx == 2:
            self.ready.set()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1.0)


def failing(ready):
    return AsyncCheckpointIO(SlowDisk(ready))


def fixed(ready):
    return CloningAsyncCheckpointIO(SlowDisk(ready))


def synchronous(ready):
    ready.set()  # the training waits for this disk
    return SlowDisk(ready)


VARIANTS = {v.__name__: v for v in (failing, fixed, synchronous)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    options = {"accelerator": accelerator, "strategy": strategy, "devices": 1, "max_epochs": 1, "barebones": True}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step=1.ckpt")
        ready = threading.Event()
        Trainer(plugins=VARIANTS[variant](ready), **options).fit(Model(path, ready), DataLoader(torch.ones(3, 1)))
        got = torch.load(path)["state_dict"]["layer.weight"].item()
    assert got == -1.0, f"the checkpoint of step 1: expected weight -1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
