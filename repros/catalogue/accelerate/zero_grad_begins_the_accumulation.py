# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0174"
# title = "zero_grad at the top of accumulate() leaves the gradients of the last micro-batch"
# kind = "misuse"
# documented = "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/1299",
#     "https://github.com/huggingface/accelerate/issues/616",
#     "https://github.com/huggingface/accelerate/issues/1422",
#     "https://github.com/huggingface/accelerate/issues/3836",
#     "https://github.com/starVLA/starVLA/issues/395",
#     "https://github.com/modelscope/DiffSynth-Studio/issues/1388",
#     "https://github.com/meituan-longcat/LongCat-Image/issues/46",
#     "https://github.com/tatsu-lab/alpaca_farm/issues/57",
# ]
# packages = ["accelerate"]
# home = "current"
# silent = true
# finds = ["accumulated_gradients_zeroed"]
#
# [tool.repro.variants.failing]
# about = "optimizer.zero_grad() as the first line of the accumulation"
# raises = "AssertionError"
# match = "expected the weight -2.0, got -1.5"
# claim = "with accelerator.accumulate(model): optimizer.zero_grad()"
# source = "https://github.com/huggingface/accelerate/issues/616"
#
# [tool.repro.variants.fixed]
# about = "optimizer.zero_grad() after the step, as the last line"
# source = "https://github.com/huggingface/accelerate/issues/616"
#
# [tool.repro.variants.before_accumulate]
# outcome = "passes"
# about = "before accumulate() it goes by the last micro-batch's flag"
#
# [tool.repro.variants.when_synchronised]
# outcome = "fails"
# about = "at the top, if accelerator.sync_gradients: that is the last micro-batch"
#
# [tool.repro.variants.model_zero_grad]
# outcome = "fails"
# about = "model.zero_grad() after the step, which knows of no accumulation"
# ///
"""The loop that every tutorial of PyTorch has, put into `accelerator.accumulate()`, accumulates nothing.

Symptom: training behaves as with a batch of one micro-batch and a learning rate that is divided by
`gradient_accumulation_steps`; nothing differs without accumulation. Silent.

Cause: a prepared optimizer skips `zero_grad()` unless `accelerator.sync_gradients` is set, which `accumulate()` sets for
the last micro-batch. At the top of the block, `zero_grad()` is skipped for all but the last micro-batch, and erases
there what the others have left. accelerate's own guide began so until 0.13.

Fix: call `optimizer.zero_grad()` after `optimizer.step()`. `model.zero_grad()` is not skipped, wherever it is.
"""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

# The loss is w * x, so that a micro-batch's gradient is its x. The mean of 1 and 3 is 2; 3 alone, divided by two
# micro-batches, is 1.5.
DATA = torch.tensor([[1.0], [3.0]])


def failing(accelerator, model, optimizer, batch):
    with accelerator.accumulate(model):
        optimizer.zero_grad()
        accelerator.backward(model(batch).mean())
        optimizer.step()


def fixed(accelerator, model, optimizer, batch):
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).mean())
        optimizer.step()
        optimizer.zero_grad()


def before_accumulate(accelerator, model, optimizer, batch):
    optimizer.zero_grad()
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).mean())
        optimizer.step()


def when_synchronised(accelerator, model, optimizer, batch):
    with accelerator.accumulate(model):
        if accelerator.sync_gradients:
            optimizer.zero_grad()
        accelerator.backward(model(batch).mean())
        optimizer.step()


def model_zero_grad(accelerator, model, optimizer, batch):
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).mean())
        optimizer.step()
        model.zero_grad()


VARIANTS = {v.__name__: v for v in (failing, fixed, before_accumulate, when_synchronised, model_zero_grad)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu", gradient_accumulation_steps=2)
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(DATA))
    for batch in loader:
        VARIANTS[variant](accelerator, model, optimizer, batch)
    got = accelerator.unwrap_model(model).weight.item()
    assert got == -2.0, f"expected the weight -2.0, got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
