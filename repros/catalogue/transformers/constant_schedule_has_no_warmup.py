# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0133"
# title = "The constant schedule ignores warmup_steps: the first step has the full rate"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules"
# upstream.reports = [
#     "https://github.com/unslothai/unsloth/issues/8269",
#     "https://github.com/bmaltais/kohya_ss/pull/2292",
#     "https://github.com/d8ahazard/sd_dreambooth_extension/pull/557",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["warmup_ignored"]
#
# [tool.repro.variants.failing]
# about = "lr_scheduler_type='constant' with warmup_steps=4"
# raises = "AssertionError"
# match = "the rates: expected [0.0, 0.25, 0.5, 0.75, 1.0], got [1.0, 1.0, 1.0, 1.0, 1.0]"
#
# [tool.repro.variants.fixed]
# about = "constant_with_warmup"
# source = "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules"
# ///
"""A training with a constant learning rate is to warm up first.

Symptom: the rate is the full one from the first step on, and `warmup_steps` and `warmup_ratio` change nothing. The loss
jumps in the first steps, or diverges. Silent.

Cause: `get_scheduler` hands `num_warmup_steps` to each schedule but `constant`, which takes no such argument. diffusers
has the same function.

Fix: `lr_scheduler_type="constant_with_warmup"`.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": (self.weight * x).mean()}


class Rates(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_step_begin(self, args, state, control, optimizer, **kwargs):
        self.seen.append(round(optimizer.param_groups[0]["lr"], 4))


def train(folder, accelerator, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=5,
        learning_rate=1.0,
        warmup_steps=4,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    rates = Rates()
    Trainer(Model(), arguments, train_dataset=[{"x": torch.ones(1)}] * 8, callbacks=[rates]).train()
    return rates.seen


def failing(*where):
    return train(*where, lr_scheduler_type="constant")


def fixed(*where):
    return train(*where, lr_scheduler_type="constant_with_warmup")


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator)
    expected = [0.0, 0.25, 0.5, 0.75, 1.0]
    assert got == expected, f"the rates: expected {expected}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
