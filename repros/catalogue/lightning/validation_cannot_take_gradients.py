# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0189"
# title = "enable_grad in a validation, test or prediction gives no gradients in Lightning"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/common/trainer.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/13948",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/14497",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/15925",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/16838",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17653",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19910",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/12715"]
# packages = ["lightning"]
# home = "2023-12"
#
# [tool.repro.variants.failing]
# about = "forces as the gradient of an energy, under torch.enable_grad() in test_step"
# raises = "RuntimeError"
# match = "element 0 of tensors does not require grad and does not have a grad_fn"
#
# [tool.repro.variants.fixed]
# about = "Trainer(inference_mode=False)"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17653"
#
# [tool.repro.variants.left_inside]
# outcome = "passes"
# about = "torch.inference_mode(False) around the step's code, and the batch cloned in it"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/14497"
#
# [tool.repro.variants.left_without_a_clone]
# outcome = "fails"
# about = "torch.inference_mode(False) around the step's code, the batch as it is"
# raises = "RuntimeError"
# match = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"
#
# [tool.repro.variants.switched_on]
# outcome = "fails"
# about = "torch.set_grad_enabled(True) in on_test_model_eval"
# claim = "gradients that a hook switches on are on in the step"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/10287"
#
# [tool.repro.variants.without_the_flag]
# outcome = "fails"
# about = "inference_mode=False, and no enable_grad in the step: no_grad takes its place"
# ///
"""A model whose evaluation needs a gradient: forces, penalties, saliency, test-time training.

Symptom: `RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn` in `validation_step`,
`test_step` or `predict_step`, although the code is under `torch.enable_grad()` and sets `requires_grad`.

Cause: since 1.8 the Trainer evaluates under `torch.inference_mode`, and not only under `no_grad`. `enable_grad` undoes
the second alone: in inference mode no operation is recorded, and what it makes can never be recorded later. A
validation within `fit` may differ from `validate`: a strategy that cannot have inference mode takes `no_grad`.

Fix: `Trainer(inference_mode=False)`, and `enable_grad` in the step, since `no_grad` remains. For one step alone,
`with torch.inference_mode(False)` and a clone of each tensor of the batch within it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Potential(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forces(self, positions):
        positions.requires_grad_(True)
        return torch.autograd.grad(self.layer(positions).sum(), positions)[0]

    def test_step(self, batch, batch_idx):
        with torch.enable_grad():
            self.forces(batch)


class LeftInside(Potential):
    def test_step(self, batch, batch_idx):
        with torch.inference_mode(False), torch.enable_grad():
            self.forces(batch.clone())


class LeftWithoutAClone(Potential):
    def test_step(self, batch, batch_idx):
        with torch.inference_mode(False), torch.enable_grad():
            self.forces(batch)


class SwitchedOn(Potential):
    def on_test_model_eval(self):
        super().on_test_model_eval()
        torch.set_grad_enabled(True)

    def test_step(self, batch, batch_idx):
        self.forces(batch)


class WithoutTheFlag(Potential):
    def test_step(self, batch, batch_idx):
        self.forces(batch)


def failing():
    return Potential(), {}


def fixed():
    return Potential(), {"inference_mode": False}


def left_inside():
    return LeftInside(), {}


def left_without_a_clone():
    return LeftWithoutAClone(), {}


def switched_on():
    return SwitchedOn(), {}


def without_the_flag():
    return WithoutTheFlag(), {"inference_mode": False}


VARIANTS = {v.__name__: v for v in (failing, fixed, left_inside, left_without_a_clone, switched_on, without_the_flag)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, options = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, devices=1, logger=False, enable_checkpointing=False, **options)
    trainer.test(model, DataLoader(torch.ones(2, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
