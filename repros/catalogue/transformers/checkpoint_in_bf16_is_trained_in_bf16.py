# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0147"
# title = "transformers 5 keeps a checkpoint's bfloat16: small steps change no weight"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/pull/42805"
# upstream.reports = [
#     "https://github.com/huggingface/trl/issues/3910",
#     "https://github.com/huggingface/sentence-transformers/pull/3773",
#     "https://github.com/huggingface/trl/pull/4770",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/transformers/pull/42805"]
# packages = ["transformers"]
# affected = ["transformers>=5"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "from_pretrained of a checkpoint in bfloat16, and 100 steps of AdamW with lr 0.001"
# raises = "AssertionError"
# match = "the weight after 100 steps: expected 0.9, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "from_pretrained(torch_dtype=torch.float32)"
# source = "https://github.com/huggingface/trl/issues/3910"
#
# [tool.repro.variants.converted]
# outcome = "passes"
# about = "model.float() before the optimizer is made"
#
# [tool.repro.variants.mixed_precision]
# outcome = "fails"
# about = "TrainingArguments(bf16=True): autocast computes in bfloat16, and the weights stay what they are"
# ///
"""A model is tuned from a checkpoint that was saved in bfloat16.

Symptom: since transformers 5 the loss of the same script falls more slowly, or not at all; with a small learning rate
the weights stay those of the checkpoint. Silent.

Cause: `from_pretrained` has `dtype="auto"` since 5.0, the checkpoint's precision, where it had float32 before. In
bfloat16 the next number below 1 is 0.996: AdamW's step of 0.001 is rounded away, each time anew.

Fix: `from_pretrained(..., dtype=torch.float32)`, called `torch_dtype` up to 4.55, with `bf16=True` in
`TrainingArguments` for the speed.

Watch: `parameters_unchanged` finds it, whatever the cause is, and so cannot name it.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments


class Model(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.weight = nn.Parameter(torch.ones(1))
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, x):
        return {"loss": (self.weight * x).mean()}  # a gradient of 1: AdamW steps by the learning rate


def train(model, folder, accelerator, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=100,
        optim="adamw_torch",
        learning_rate=0.001,
        lr_scheduler_type="constant",
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    Trainer(model, arguments, train_dataset=[{"x": torch.ones(1)}] * 8).train()
    return model.weight.item()


def failing(folder, accelerator):
    return train(Model.from_pretrained(folder), folder, accelerator)


def fixed(folder, accelerator):
    return train(Model.from_pretrained(folder, torch_dtype=torch.float32), folder, accelerator)


def converted(folder, accelerator):
    return train(Model.from_pretrained(folder).float(), folder, accelerator)


def mixed_precision(folder, accelerator):
    return train(Model.from_pretrained(folder), folder, accelerator, bf16=True)


VARIANTS = {v.__name__: v for v in (failing, fixed, converted, mixed_precision)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        Model(PretrainedConfig()).bfloat16().save_pretrained(folder)
        got = round(VARIANTS[variant](folder, accelerator), 2)
    assert got == 0.9, f"the weight after 100 steps: expected 0.9, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
