# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0151"
# title = "Clipping after each micro-batch turns an accumulated update around"
# kind = "misuse"
# documented = "https://huggingface.co/docs/accelerate/basic_tutorials/migration"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/641",
#     "https://github.com/huggingface/diffusers/pull/686",
#     "https://github.com/huggingface/diffusers/pull/721",
# ]
# upstream.related = ["https://github.com/tenstorrent/tt-metal/issues/17568"]
# packages = ["accelerate"]
# home = "current"
# silent = true
# finds = ["clipped_while_accumulating"]
#
# [tool.repro.variants.failing]
# about = "accelerator.clip_grad_norm_ after each backward"
# raises = "AssertionError"
# match = "expected the weight -1.0, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "clip if accelerator.sync_gradients"
# source = "https://github.com/huggingface/accelerate/issues/641"
#
# [tool.repro.variants.torch_clips]
# outcome = "fails"
# about = "torch.nn.utils.clip_grad_norm_ after each backward"
#
# [tool.repro.variants.step_guarded]
# outcome = "fails"
# about = "guard the step instead of the clipping"
# ///
"""Gradients are clipped while they are still being accumulated.

Symptom: the direction of updates depends on the order of micro-batches; an early one counts for less, and a late small
one can outvote it. In float16 it raises, or gives NaN. Silent otherwise.

Cause: `clip_grad_norm_` clips what is in `.grad`, the sum so far. `optimizer.step()` is skipped by a prepared optimizer
until the last micro-batch; the clipping is not.

Fix: clip under `if accelerator.sync_gradients:`.
"""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

# The loss is w * x, so that a micro-batch's gradient is its x, of which accelerate takes half: 4 and -2. Their sum, 2, is
# clipped to 1. Clipped to 1 at once, 4 and -2 sum to -1.
DATA = torch.tensor([[8.0], [-4.0]])


def failing(accelerator, model, optimizer, loss):
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def fixed(accelerator, model, optimizer, loss):
    accelerator.backward(loss)
    if accelerator.sync_gradients:
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def torch_clips(accelerator, model, optimizer, loss):
    accelerator.backward(loss)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def step_guarded(accelerator, model, optimizer, loss):
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    if accelerator.sync_gradients:
        optimizer.step()
        optimizer.zero_grad()


VARIANTS = {v.__name__: v for v in (failing, fixed, torch_clips, step_guarded)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu", gradient_accumulation_steps=2)
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(DATA))
    for batch in loader:
        with accelerator.accumulate(model):
            VARIANTS[variant](accelerator, model, optimizer, model(batch).mean())
    got = round(accelerator.unwrap_model(model).weight.item(), 3)
    assert got == -1.0, f"expected the weight -1.0, got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
