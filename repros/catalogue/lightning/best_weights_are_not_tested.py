# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0100"
# title = "trainer.test(model) after a fit tests the last weights, not the best"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.trainer.trainer.Trainer.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/2046",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/1395",
#     "https://github.com/torchgeo/torchgeo/pull/963",
#     "https://github.com/luxonis/luxonis-train/pull/272",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/2215"]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "trainer.test(model) after a fit with ModelCheckpoint(monitor=...)"
# raises = "AssertionError"
# match = "the weight that is tested: expected -2.0, of the best epoch 1, got -5.0"
#
# [tool.repro.variants.fixed]
# about = "trainer.test(model, ckpt_path='best')"
# source = "https://lightning.ai/docs/pytorch/stable/common/evaluation_intermediate.html"
#
# [tool.repro.variants.without_model]
# outcome = "passes"
# about = "trainer.test() without a model, which loads the best"
# source = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.trainer.trainer.Trainer.html"
#
# [tool.repro.variants.two_callbacks]
# outcome = "fails"
# about = "ckpt_path='best' with a second ModelCheckpoint before it, for the last epoch: the first one is asked, with a warning"
# ///
"""The test after a training does not use the checkpoint that was kept as the best.

Symptom: the test's score is that of the last epoch, and a run that overfits at its end looks worse than it is. Silent.

Cause: `trainer.test(model)` tests the model that it is given, as it is; after a fit these are the last weights.
`ModelCheckpoint` changes nothing in the model. With several `ModelCheckpoint` callbacks "best" is what the first one
holds.

Fix: `ckpt_path="best"`, or the path of the file.

Watch: no check sees it, since which weights a test is meant for is known to the program alone.
"""

import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

LOSSES = [3.0, 1.0, 5.0, 6.0, 7.0]  # by epoch


class Model(LightningModule):
    """The weight begins at 0, and each epoch takes 1 from it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", LOSSES[self.current_epoch])

    def test_step(self, batch, batch_idx):
        self.tested = self.layer.weight.item()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def failing(trainer, model, loader):
    trainer.test(model, loader)


def fixed(trainer, model, loader):
    trainer.test(model, loader, ckpt_path="best")


def without_model(trainer, model, loader):
    trainer.test(dataloaders=loader)


def two_callbacks(trainer, model, loader):
    trainer.test(model, loader, ckpt_path="best")


VARIANTS = {v.__name__: v for v in (failing, fixed, without_model, two_callbacks)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, loader = Model(), DataLoader(torch.ones(1, 1))
    with tempfile.TemporaryDirectory() as folder:
        last = [ModelCheckpoint(folder, "last")] if variant == "two_callbacks" else []
        options = {"max_epochs": 5, "logger": False, "num_sanity_val_steps": 0}
        options["callbacks"] = [*last, ModelCheckpoint(folder, monitor="val")]
        trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options)
        trainer.fit(model, loader, loader)
        VARIANTS[variant](trainer, model, loader)
    got = model.tested
    assert got == -2.0, f"the weight that is tested: expected -2.0, of the best epoch 1, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
