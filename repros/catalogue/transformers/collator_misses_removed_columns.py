# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0143"
# title = "Trainer removes the columns that only the collator reads"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/main_classes/trainer"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/19599",
#     "https://github.com/huggingface/transformers/pull/38091",
#     "https://github.com/huggingface/transformers/issues/7823",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/transformers/pull/17166"]
# upstream.related = ["https://github.com/huggingface/transformers/issues/43598"]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "a collator that multiplies each sample by its weight, 1 where the sample has none"
# raises = "AssertionError"
# match = "the weight after one step: expected -0.2, got -0.1"
#
# [tool.repro.variants.fixed]
# about = "remove_unused_columns=False"
# source = "https://github.com/huggingface/transformers/pull/38091"
#
# [tool.repro.variants.named_in_forward]
# outcome = "passes"
# about = "the forward names the column, too"
# source = "https://huggingface.co/docs/transformers/main_classes/trainer"
#
# [tool.repro.variants.kwargs_in_forward]
# outcome = "fails"
# about = "a forward with **kwargs: no column is called kwargs, and the weight is removed all the same"
# ///
"""A collator makes the model's inputs out of columns that the model itself does not take.

Symptom: the collator gets samples without these columns. Where it has a default for them, the training goes on with it:
samples without weights, images or prompts. Silent; a collator without a default raises KeyError, and where no column is
left, `Trainer` does.

Cause: `remove_unused_columns` is True. `Trainer` compares the columns with the signature of the model's `forward`, and
removes the others before the collator sees the samples: since transformers 4.20 from any data set whose samples are
dictionaries, not from those of `datasets` alone.

Fix: `TrainingArguments(remove_unused_columns=False)`, with a collator that returns what the model takes.

Watch: no check sees it, since the collator alone knows which columns it needs.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": (self.weight * x).mean()}


class NamedInForward(Model):
    def forward(self, x, weight=None):
        return super().forward(x)


class KwargsInForward(Model):
    def forward(self, x, **kwargs):
        return super().forward(x)


def weigh(samples):
    return {"x": torch.stack([sample["x"] * sample.get("weight", 1.0) for sample in samples])}


def new_trainer(model, folder, accelerator, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=1,
        optim="sgd",
        learning_rate=0.1,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    data = [{"x": torch.ones(1), "weight": 2.0}] * 2
    return Trainer(model, arguments, train_dataset=data, data_collator=weigh)


def failing(*where):
    return new_trainer(Model(), *where)


def fixed(*where):
    return new_trainer(Model(), *where, remove_unused_columns=False)


def named_in_forward(*where):
    return new_trainer(NamedInForward(), *where)


def kwargs_in_forward(*where):
    return new_trainer(KwargsInForward(), *where)


VARIANTS = {v.__name__: v for v in (failing, fixed, named_in_forward, kwargs_in_forward)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        trainer = VARIANTS[variant](folder, accelerator)
        trainer.train()
    # The gradient is the weighted sample, 2, and SGD steps by 0.1 of it.
    got = round(trainer.model.weight.item(), 4)
    assert got == -0.2, f"the weight after one step: expected -0.2, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
