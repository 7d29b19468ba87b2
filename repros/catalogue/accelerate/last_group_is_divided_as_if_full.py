# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0170"
# title = "The last, smaller group of an epoch is divided as if it were full"
# kind = "by design"
# documented = "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/38837",
#     "https://github.com/huggingface/transformers/pull/38872",
#     "https://github.com/huggingface/transformers/pull/39659",
#     "https://github.com/jingyaogong/minimind/issues/749",
# ]
# packages = ["accelerate"]
# home = "current"
# silent = true
#
# [tool.repro.variants.failing]
# about = "six batches with gradient_accumulation_steps=4"
# raises = "AssertionError"
# match = "expected [1.0, 1.0], got [1.0, 0.5]"
#
# [tool.repro.variants.fixed]
# about = "multiply the losses of the last group by 4 and divide them by its size"
# source = "https://github.com/huggingface/transformers/pull/39659"
#
# [tool.repro.variants.gradients_scaled]
# outcome = "passes"
# about = "scale the gradients before the step, as one would by hand"
# source = "https://github.com/jingyaogong/minimind/issues/749"
# ///
"""The number of batches of an epoch is no multiple of `gradient_accumulation_steps`.

Symptom: the last update of each epoch is too small, by a factor of up to `gradient_accumulation_steps`; the logged
gradient norm dips there. With few batches in an epoch that is a large part of the training. Silent.

Cause: `accelerator.backward` divides each loss by `gradient_accumulation_steps`, and the last batch of a loader ends a
group whatever its size.

Fix: scale the losses of this group by `gradient_accumulation_steps` over its size. transformers' Trainer, which had the
same failure, counts its batches since 4.55. Lightning's `accumulate_grad_batches` divides the last group alike (2.1, 2.6).

Watch: no check tells it from a healthy training, since a smaller update is nothing unusual.
"""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

GROUP, BATCHES = 4, 6
REST = BATCHES % GROUP
# The loss is w * x with x = 1, so that each group has a mean gradient of 1, and each update is 1.


def failing(accelerator, model, loss, last):
    accelerator.backward(loss)


def fixed(accelerator, model, loss, last):
    accelerator.backward(loss * GROUP / REST if last else loss)


def gradients_scaled(accelerator, model, loss, last):
    accelerator.backward(loss)
    if last and accelerator.sync_gradients:
        for parameter in model.parameters():
            parameter.grad.mul_(GROUP / REST)


VARIANTS = {v.__name__: v for v in (failing, fixed, gradients_scaled)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu", gradient_accumulation_steps=GROUP)
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.ones(BATCHES, 1)))
    got = []
    for number, batch in enumerate(loader):
        before = accelerator.unwrap_model(model).weight.item()
        with accelerator.accumulate(model):
            VARIANTS[variant](accelerator, model, model(batch).mean(), last=number >= BATCHES - REST)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            got.append(round(before - accelerator.unwrap_model(model).weight.item(), 3))
    assert got == [1.0, 1.0], f"the updates of an epoch: expected [1.0, 1.0], got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
