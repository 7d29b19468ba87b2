# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0006"
# title = "A model in eval mode trains in eval mode"
# kind = "by design"
# documented = "https://github.com/Lightning-AI/pytorch-lightning/releases/tag/2.2.0"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20105",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20573",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20986",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20128",
#     "https://github.com/autogluon/autogluon/issues/4965",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19820"]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/18951"]
# packages = ["lightning"]
# affected = ["lightning>=2.2"]
# exists = ["lightning>=2.2"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/releases/tag/2.2.0"
# home = "2026-07"
# silent = true
# finds = ["eval_mode"]
#
# [tool.repro.variants.failing]
# about = "fit a network that is in eval mode, as from_pretrained leaves it"
# raises = "AssertionError"
# match = "expected the batch's mean 2.0 as running mean, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "network.train() before the fit"
# source = "https://github.com/Lightning-AI/pytorch-lightning/releases/tag/2.2.0"
#
# [tool.repro.variants.train_hook]
# outcome = "passes"
# about = "self.train() in on_train_start"
#
# [tool.repro.variants.module_train_before]
# outcome = "fails"
# about = "the LightningModule is set to train mode before the network is assigned to it"
# ///
"""A fit does not switch a model to train mode any more: dropout is off and batch norm does not learn.

Symptom: a pretrained network trains, but worse than it used to: dropout does nothing, running statistics do not change.
Nothing is raised; from Lightning 2.5.5 a warning counts the modules in eval mode.

Cause: up to 2.1 `_FitLoop.reset` called `model.train()`. From 2.2 a fit takes each module's mode as it finds it,
so that frozen parts may stay in eval mode; and `from_pretrained` and `torch.hub` hand out networks in eval mode.

Fix: call `train()` on the network that is to be trained, after loading it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader

BATCH = [1.0, 3.0]  # of mean 2; with momentum 1 a batch norm's running mean is the last batch's


def from_pretrained():
    return nn.Sequential(nn.BatchNorm1d(1, momentum=1.0), nn.Linear(1, 1)).eval()


class Model(LightningModule):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def training_step(self, batch, batch_idx):
        return self.network(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class ModelWithHook(Model):
    def on_train_start(self):
        self.train()


def failing():
    return Model(from_pretrained())


def fixed():
    return Model(from_pretrained().train())


def train_hook():
    return ModelWithHook(from_pretrained())


def module_train_before():
    model = Model(nn.Identity()).train()
    model.network = from_pretrained()
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, train_hook, module_train_before)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=1, barebones=True)
    trainer.fit(model, DataLoader(torch.tensor(BATCH * 2).view(4, 1), batch_size=2))
    got = model.network[0].running_mean.item()
    assert got == 2.0, f"expected the batch's mean 2.0 as running mean, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
