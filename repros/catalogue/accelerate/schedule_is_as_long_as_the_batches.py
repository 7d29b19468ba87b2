# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0197"
# title = "A schedule as long as the batches never ends under accumulation, or ends early"
# kind = "misuse"
# documented = "https://github.com/huggingface/accelerate/pull/999"
# upstream.reports = [
#     "https://github.com/huggingface/diffusers/issues/4387",
#     "https://github.com/huggingface/diffusers/issues/2632",
#     "https://github.com/huggingface/accelerate/issues/1160",
#     "https://github.com/huggingface/accelerate/issues/1170",
#     "https://github.com/huggingface/accelerate/issues/963",
#     "https://github.com/starVLA/starVLA/pull/210",
# ]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/pull/1187",
#     "https://github.com/huggingface/accelerate/pull/4262",
# ]
# packages = ["accelerate"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "a prepared schedule of 16 steps, for 16 batches of which four make a step"
# raises = "AssertionError"
# match = "expected the rate to fall to 0 in 4 steps, got [1.0, 0.938, 0.875, 0.812]"
#
# [tool.repro.variants.fixed]
# about = "a schedule of 4 steps"
# source = "https://github.com/huggingface/diffusers/issues/2632"
#
# [tool.repro.variants.adjusted]
# outcome = "fails"
# claim = "adjust_scheduler=True adjusts the steps of the scheduler to the accumulation"
# about = "GradientAccumulationPlugin(num_steps=4, adjust_scheduler=True), which changes a counter at most"
# source = "https://github.com/huggingface/accelerate/pull/1187"
#
# [tool.repro.variants.by_batches]
# outcome = "fails"
# about = "a schedule of 4 steps that is not prepared, and advances with each batch"
# raises = "AssertionError"
# match = "expected the rate to fall to 0 in 4 steps, got [0.25, 0.0, 0.0, 0.0]"
#
# [tool.repro.variants.guarded]
# outcome = "passes"
# about = "the same, if accelerator.sync_gradients"
# source = "https://github.com/starVLA/starVLA/pull/210"
# ///
"""A schedule of the learning rate that counts batches in a training that counts optimizer steps.

Symptom: the rate is far from zero at the end of the training, or it is zero long before. With four accumulated batches a
linear schedule ends at three quarters of its rate, or after a quarter of the training. A warm-up is four times as long,
or as short. Silent.

Cause: an accumulation makes one optimizer step of several batches. A schedule is too long if it has the length of the
batches and advances with each optimizer step, and too short if it is the other way round. A scheduler that accelerate has
prepared does nothing in a batch without an optimizer step, from accelerate 0.16 on; several training scripts
multiplied its length with the accumulation. `GradientAccumulationPlugin(adjust_scheduler=True)`, the default, adds the
batches to a counter, `_step_count`, at most, and changes no rate.

Fix: the length in optimizer steps, and one advance for each of them: a prepared scheduler, or one that is called if
`accelerator.sync_gradients`.

Apart: with several processes a prepared scheduler advances once for each of them (RPR-0150).

Watch: no check compares the length of a schedule with the accumulation yet. `schedule_unfinished` and
`schedule_passed_end` report schedules of some classes, in longer trainings.
"""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader

BATCHES, ACCUMULATED = 16, 4
STEPS = BATCHES // ACCUMULATED


def train(length, accelerator, is_prepared=True, is_guarded=False):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=length)
    model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(torch.ones(BATCHES, 1)))
    if is_prepared:
        scheduler = accelerator.prepare(scheduler)
    rates = []
    for batch in batches:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).sum())
            if accelerator.sync_gradients:
                rates.append(round(scheduler.get_last_lr()[0], 3))
            optimizer.step()
            if accelerator.sync_gradients or not is_guarded:
                scheduler.step()
            optimizer.zero_grad()
    return rates


def failing():
    return train(BATCHES, Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED))


def fixed():
    return train(STEPS, Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED))


def adjusted():
    plugin = GradientAccumulationPlugin(num_steps=ACCUMULATED, adjust_scheduler=True)
    return train(BATCHES, Accelerator(cpu=True, gradient_accumulation_plugin=plugin))


def by_batches():
    return train(STEPS, Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED), is_prepared=False)


def guarded():
    options = {"is_prepared": False, "is_guarded": True}
    return train(STEPS, Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED), **options)


VARIANTS = {v.__name__: v for v in (failing, fixed, adjusted, by_batches, guarded)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant]()  # the rate of each optimizer step
    assert got == [1.0, 0.75, 0.5, 0.25], f"expected the rate to fall to 0 in 4 steps, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
