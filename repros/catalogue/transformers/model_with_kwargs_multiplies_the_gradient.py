# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0155"
# title = "A forward that ignores num_items_in_batch: gradients times the accumulated steps"
# kind = "bug"
# documented = "https://github.com/huggingface/transformers/issues/47688"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/37766",
#     "https://github.com/huggingface/transformers/issues/47688",
#     "https://github.com/huggingface/transformers/pull/41006",
#     "https://github.com/linkedin/Liger-Kernel/issues/802",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/transformers/pull/34198"]
# upstream.related = [
#     "https://github.com/huggingface/transformers/pull/35438",
#     "https://github.com/huggingface/transformers/pull/35651",
#     "https://github.com/huggingface/transformers/pull/47690",
#     "https://github.com/huggingface/transformers/pull/47836",
# ]
# packages = ["transformers"]
# affected = ["transformers>=4.46"]
# exists = ["transformers>=4.46"]
# exists_source = "https://github.com/huggingface/transformers/pull/34198"
# home = "2025-11"
# silent = true
#
# [tool.repro.variants.failing]
# about = "forward(x, labels, **kwargs) returns the mean of its batch; four batches to a step"
# raises = "AssertionError"
# match = "the weight after one step: expected -0.1, got -0.4"
#
# [tool.repro.variants.fixed]
# about = "the loss is a sum, divided by num_items_in_batch where Trainer gives it"
# source = "https://github.com/huggingface/transformers/issues/47688"
#
# [tool.repro.variants.attribute]
# outcome = "passes"
# about = "accepts_loss_kwargs = False on the model: Trainer divides by the number of steps"
# source = "https://github.com/huggingface/transformers/issues/47688"
#
# [tool.repro.variants.trainer_told]
# outcome = "passes"
# about = "trainer.model_accepts_loss_kwargs = False"
#
# [tool.repro.variants.no_kwargs]
# outcome = "passes"
# about = "a forward without **kwargs, which Trainer never takes for one that divides"
#
# [tool.repro.variants.own_loss]
# outcome = "fails"
# about = "a compute_loss that calls the model itself and takes num_items_in_batch only to ignore it"
# ///
"""A model of one's own takes **kwargs in its forward, and gradients are accumulated.

Symptom: the gradients grow with `gradient_accumulation_steps`, and so does the logged loss up to 4.51: training is as
with a learning rate that many times too large, or clipped in each step. On several processes they grow with their
number as well, without any accumulation. Silent.

Cause: since transformers 4.46 `Trainer` takes `**kwargs` in the signature of `forward` for the promise to divide the
loss by `num_items_in_batch`, and does not divide by `gradient_accumulation_steps` any more. A forward that takes the
number and drops it is divided by neither. Where `average_tokens_across_devices` is on, as by default in 4.57 and later,
`Trainer` also multiplies such a loss by the number of processes, since DDP averages over them. Dozens of heads in the library itself are among those. In 4.46 and 4.47 no
model without `**kwargs` is divided either.

Fix: divide a summed loss by `num_items_in_batch`. Or set `accepts_loss_kwargs = False` on the model's class.

Watch: no check sees it, since a loss that many times larger would be as healthy.
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


class Failing(Model):
    def forward(self, x, labels=None, **kwargs):
        return {"loss": (self.weight * x).mean()}


class Fixed(Model):
    def forward(self, x, labels=None, num_items_in_batch=None, **kwargs):
        return {"loss": (self.weight * x).sum() / (num_items_in_batch or len(x))}


class Attribute(Failing):
    accepts_loss_kwargs = False


class NoKwargs(Model):
    def forward(self, x, labels=None):
        return {"loss": (self.weight * x).mean()}


class OwnLoss(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return model(**inputs)["loss"]


def failing(arguments, data):
    return Trainer(Failing(), arguments, train_dataset=data)


def fixed(arguments, data):
    return Trainer(Fixed(), arguments, train_dataset=data)


def attribute(arguments, data):
    return Trainer(Attribute(), arguments, train_dataset=data)


def trainer_told(arguments, data):
    trainer = Trainer(Failing(), arguments, train_dataset=data)
    trainer.model_accepts_loss_kwargs = False
    return trainer


def no_kwargs(arguments, data):
    return Trainer(NoKwargs(), arguments, train_dataset=data)


def own_loss(arguments, data):
    return OwnLoss(Failing(), arguments, train_dataset=data)


VARIANTS = {v.__name__: v for v in (failing, fixed, attribute, trainer_told, no_kwargs, own_loss)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    # Each of the four batches has two samples and the gradient 1, so their mean is 1, too: SGD steps by 0.1.
    data = [{"x": torch.ones(1), "labels": torch.zeros(1)} for _ in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=accelerator == "cpu",
            per_device_train_batch_size=2,
            gradient_accumulation_steps=4,
            max_steps=1,
            optim="sgd",
            learning_rate=0.1,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = VARIANTS[variant](arguments, data)
        trainer.train()
    got = round(trainer.model.weight.item(), 4)
    assert got == -0.1, f"the weight after one step: expected -0.1, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
