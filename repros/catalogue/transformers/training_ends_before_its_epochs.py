# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0165"
# title = "Training ends epochs too early if the accumulated steps do not divide the batches"
# kind = "bug"
# documented = "https://github.com/huggingface/transformers/issues/33455"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/33455",
#     "https://github.com/huggingface/transformers/issues/31677",
#     "https://github.com/huggingface/transformers/issues/36297",
# ]
# upstream.fixed_by = ["https://github.com/huggingface/transformers/pull/37923"]
# packages = ["transformers"]
# affected = ["transformers<4.52"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "10 epochs of 7 batches with gradient_accumulation_steps=4"
# raises = "AssertionError"
# match = ["10 epochs of 7 batches: expected 70 or more, got 40", "10 epochs of 7 batches: expected 70 or more, got 35"]
#
# [tool.repro.variants.fixed]
# about = "max_steps: twice ten, since a step takes four batches and then the three that are left, or four each"
#
# [tool.repro.variants.dropped]
# outcome = "fails"
# about = "dataloader_drop_last=True drops incomplete batches, not incomplete steps"
#
# [tool.repro.variants.divided]
# outcome = "passes"
# about = "gradient_accumulation_steps=7"
# contrast = true
# ///
"""Gradients are accumulated over a number of batches that does not divide those of an epoch.

Symptom: the training ends after about half of `num_train_epochs`, its log says so, and the learning rate has come down
to 0 by then. Silent. With many batches to an epoch little is lost: up to one step of each epoch.

Cause: `Trainer` computes the number of steps with 7 // 4 = 1 step to an epoch, so 10. Up to transformers 4.45 a step
takes four batches across the ends of epochs, 40 of 70. From 4.46 on the rest of an epoch is a step of its own, two to
an epoch, and the ten steps are those of five epochs, 35 batches. Since 4.52 the number is rounded up.

Fix: transformers 4.52. Before: `max_steps`, as many as are wanted.

Watch: no check sees it, since the training takes as many steps as `Trainer` has planned.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.batches = nn.Parameter(torch.zeros(1)), 0

    def forward(self, x):
        self.batches += 1
        return {"loss": (self.weight * x).mean()}


def train(folder, accelerator, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        per_device_train_batch_size=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    model = Model()
    Trainer(model, arguments, train_dataset=[{"x": torch.ones(1)}] * 7).train()
    return model.batches


def failing(*where):
    return train(*where, num_train_epochs=10, gradient_accumulation_steps=4)


def fixed(*where):
    return train(*where, max_steps=20, gradient_accumulation_steps=4)


def dropped(*where):
    return train(*where, num_train_epochs=10, gradient_accumulation_steps=4, dataloader_drop_last=True)


def divided(*where):
    return train(*where, num_train_epochs=10, gradient_accumulation_steps=7)


VARIANTS = {v.__name__: v for v in (failing, fixed, dropped, divided)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator)
    assert got >= 70, f"10 epochs of 7 batches: expected 70 or more, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
