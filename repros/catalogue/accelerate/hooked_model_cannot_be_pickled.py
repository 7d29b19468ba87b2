# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0038"
# title = "A model with accelerate's hooks cannot be handed to spawned ranks"
# kind = "limitation"
# documented = "https://github.com/huggingface/accelerate/pull/2613"
# upstream.reports = ["https://github.com/IVGSZ/Flash-VStream/issues/7"]
# upstream.related = ["https://github.com/huggingface/accelerate/pull/2613"]
# packages = ["accelerate"]
# exists = ["accelerate>=0.8"]
# exists_source = "https://github.com/huggingface/accelerate/pull/345"
# home = "2023-12"
# strategies = ["ddp_spawn"]
# cold = ["ddp_spawn"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "hook the model, then spawn the ranks with it"
# raises = "Exception"
# match = [
#     "local object 'add_hook_to_module.<locals>.new_forward'",
#     "Can't pickle <function Linear.forward at 0x7f2a9c0c1bc0>: it's not the same object as torch.nn.modules.linear.Linear.forward",
# ]
#
# [tool.repro.variants.fixed]
# about = "hook the model in each rank"
#
# [tool.repro.variants.hooks_removed]
# outcome = "passes"
# about = "take the hooks off before the ranks are spawned"
#
# [tool.repro.variants.forked]
# outcome = "passes"
# about = "start the ranks with fork, which pickles nothing"
#
# [tool.repro.variants.copied]
# outcome = "fails"
# about = "spawn the ranks with a deep copy of the hooked model"
# ///
"""A quantised or dispatched model trains in one process and cannot be sent to several, by spawn or through a queue.

Symptom: `AttributeError: Can't pickle local object 'add_hook_to_module.<locals>.new_forward'` (newer Pythons say
"Can't get local object"); up to accelerate 0.23 `PicklingError: Can't pickle <function Linear.forward>: it's not the
same object as torch.nn.modules.linear.Linear.forward`. The launching process raises it; no rank has started.

Cause: `accelerate.hooks.add_hook_to_module` replaces the module's `forward` with a function that is defined inside
`add_hook_to_module`. Pickle stores a function by the name under which it can be imported; a local function has none.

Fix: hand over a model without hooks and hook it in the rank, or fork.
"""

import copy
import sys

import torch
from accelerate.hooks import ModelHook, add_hook_to_module, remove_hook_from_module
from torch import multiprocessing, nn


def hooked():
    return add_hook_to_module(nn.Linear(1, 1), ModelHook())


def train(rank, model):
    model(torch.ones(1, 1)).sum().backward()


def hook_and_train(rank, model):
    train(rank, add_hook_to_module(model, ModelHook()))


def failing():
    multiprocessing.spawn(train, args=(hooked(),), nprocs=2)


def fixed():
    multiprocessing.spawn(hook_and_train, args=(nn.Linear(1, 1),), nprocs=2)


def hooks_removed():
    multiprocessing.spawn(train, args=(remove_hook_from_module(hooked()),), nprocs=2)


def forked():
    multiprocessing.start_processes(train, args=(hooked(),), nprocs=2, start_method="fork")


def copied():
    multiprocessing.spawn(train, args=(copy.deepcopy(hooked()),), nprocs=2)


VARIANTS = {v.__name__: v for v in (failing, fixed, hooks_removed, forked, copied)}


def main(variant="failing", strategy="ddp_spawn", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    VARIANTS[variant]()


if __name__ == "__main__":
    main(*sys.argv[1:])
