# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0150"
# title = "A prepared scheduler advances once for each rank and ends after half of the steps"
# kind = "by design"
# documented = "https://huggingface.co/docs/accelerate/concept_guides/performance"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/662",
#     "https://github.com/huggingface/accelerate/issues/1382",
#     "https://github.com/huggingface/accelerate/issues/2926",
#     "https://github.com/huggingface/accelerate/issues/2773",
#     "https://github.com/huggingface/accelerate/issues/2142",
#     "https://github.com/huggingface/accelerate/issues/2318",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/pull/24088",
#     "https://github.com/huggingface/diffusers/pull/8312",
# ]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["schedule_ahead"]
#
# [tool.repro.variants.failing]
# about = "a schedule for as many steps as a rank makes, prepared"
# raises = "AssertionError"
# match = "expected [1.0, 0.75, 0.5, 0.25], got [1.0, 0.5, 0.0, 0.0]"
#
# [tool.repro.variants.fixed]
# about = "a schedule for as many steps as all ranks make together"
# source = "https://github.com/huggingface/accelerate/issues/2773"
#
# [tool.repro.variants.not_prepared]
# outcome = "passes"
# about = "leave the scheduler out of prepare"
# source = "https://github.com/huggingface/transformers/pull/24088"
#
# [tool.repro.variants.own_pace]
# outcome = "passes"
# about = "step_scheduler_with_optimizer=False"
# source = "https://github.com/huggingface/accelerate/issues/2318"
#
# [tool.repro.variants.counted_before_prepare]
# outcome = "passes"
# about = "the length of the loader before prepare, which is what accelerate expects"
# ///
"""A warm-up or a decay is counted in the steps that the training makes, and the scheduler is prepared.

Symptom: on n ranks the learning rate runs through its schedule n times too fast, and stays at its end for the rest of
the training. With one rank all is well. Silent.

Cause: the scheduler that `prepare` returns steps n times for each call, since it takes the schedule for one that was
made for the loader before it was sharded. A number of steps from the prepared loader, or from a configuration, is n
times smaller.

Fix: multiply the schedule's lengths by `accelerator.num_processes`, or do not prepare the scheduler. It is then neither
saved by `save_state` nor skipped where the optimizer is.
"""

import os
import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.distributed import run
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader

STEPS = 4  # of each of two ranks, which have four of eight samples


def linear(optimizer, steps):
    return LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=steps)


def failing(accelerator, optimizer, loader):
    return accelerator.prepare(linear(optimizer, STEPS))


def fixed(accelerator, optimizer, loader):
    return accelerator.prepare(linear(optimizer, STEPS * accelerator.num_processes))


def not_prepared(accelerator, optimizer, loader):
    return linear(optimizer, STEPS)


def own_pace(accelerator, optimizer, loader):
    accelerator.step_scheduler_with_optimizer = False  # as an argument of Accelerator
    return accelerator.prepare(linear(optimizer, STEPS))


def counted_before_prepare(accelerator, optimizer, loader):
    return accelerator.prepare(linear(optimizer, len(loader)))


VARIANTS = {v.__name__: v for v in (failing, fixed, not_prepared, own_pace, counted_before_prepare)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    model, loader = nn.Linear(1, 1), DataLoader(torch.ones(2 * STEPS, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = VARIANTS[variant](accelerator, optimizer, loader)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    got = []
    for batch in loader:
        got.append(round(optimizer.param_groups[0]["lr"], 2))
        accelerator.backward(model(batch).mean())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    assert got == [1.0, 0.75, 0.5, 0.25], f"expected [1.0, 0.75, 0.5, 0.25], got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
