# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0172"
# title = "A run resumed with load_state shuffles as in the first epoch again"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/3158",
#     "https://github.com/huggingface/accelerate/issues/685",
#     "https://github.com/huggingface/accelerate/issues/2016",
#     "https://github.com/huggingface/accelerate/issues/3242",
#     "https://github.com/huggingface/accelerate/issues/4195",
#     "https://github.com/huggingface/accelerate/issues/3996",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/accelerate/pull/2694"]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/issues/2823",
#     "https://github.com/huggingface/accelerate/pull/4012",
#     "https://github.com/huggingface/accelerate/pull/4071",
#     "https://github.com/huggingface/accelerate/pull/4232",
#     "https://github.com/huggingface/accelerate/pull/4233",
# ]
# packages = ["accelerate"]
# affected = ["accelerate<0.26 or accelerate>=0.30"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "save_state after an epoch, load_state in a new run, and the next epoch"
# raises = "AssertionError"
# match = "orders in two epochs: expected 2, got 1"
#
# [tool.repro.variants.fixed]
# about = "iterate an epoch before going on, for each that was done"
#
# [tool.repro.variants.seedable]
# outcome = "passes"
# about = "use_seedable_sampler=True, and loader.set_epoch(1)"
# requires = ["accelerate>=0.28"]
#
# [tool.repro.variants.set_epoch]
# outcome = "fails"
# about = "loader.set_epoch(1) with the default sampler, which takes no notice"
# claim = "set_epoch before going on makes the order that of this epoch"
# source = "https://github.com/huggingface/accelerate/issues/2823"
# requires = ["accelerate>=0.28"]
#
# [tool.repro.variants.seedable_alone]
# outcome = "fails"
# about = "use_seedable_sampler=True without set_epoch"
# claim = "use_seedable_sampler has another order in each epoch"
# source = "https://github.com/huggingface/accelerate/issues/2333"
# requires = ["accelerate>=0.28"]
# affected = ["accelerate>=0.28"]
# ///
"""A run goes on from a checkpoint at the end of an epoch.

Symptom: the first epoch after a resume has the very order of epoch 0; a run that is interrupted often sees one order
only. Silent.

Cause: on several ranks `prepare` gives a shuffled loader a generator of its own in 0.20.3, and again since 0.30.0;
0.26.1 and 0.29.3 draw from torch's. `save_state` writes the random states of Python, NumPy and torch, but not this
generator's. 0.24 and 0.25 put in a `SeedableRandomSampler` for any number of ranks, as `use_seedable_sampler` does
later; its order follows from the number of the epoch, which is not saved either, so one process is affected as well.

Fix: `DataLoaderConfiguration(use_seedable_sampler=True)` and `loader.set_epoch(epoch)` after `load_state`, for a
checkpoint of an epoch's end. Or iterate as many epochs as were done, after `load_state`. Inside an epoch, with
`skip_first_batches`, 1.12.0 forgets the epoch that was set (accelerate#4071), and up to 1.15.0 the next epoch of the
original loader is the same once more: call `set_epoch` at the start of each epoch.

Watch: no check sees it, since none compares the orders of two runs.
"""

import os
import sys
import tempfile

import accelerate
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.distributed import run
from torch.utils.data import DataLoader

SAMPLES = torch.arange(100)  # two shuffles of as many are never alike


def new_loader(accelerator):
    set_seed(0)
    return accelerator.prepare(DataLoader(SAMPLES, batch_size=10, shuffle=True))


def order(accelerator, loader):
    return tuple(torch.cat([accelerator.gather(batch) for batch in loader]).tolist())


def first_run(accelerator, folder):
    first = order(accelerator, new_loader(accelerator))
    accelerator.save_state(folder)
    accelerator.wait_for_everyone()
    return first


def second_run(accelerator, folder):
    loader = new_loader(accelerator)
    accelerator.load_state(folder)
    return loader


def failing(new_accelerator, folder):
    accelerator = new_accelerator()
    return first_run(accelerator, folder), order(accelerator, second_run(new_accelerator(), folder))


def fixed(new_accelerator, folder):
    accelerator = new_accelerator()
    first = first_run(accelerator, folder)
    loader = second_run(new_accelerator(), folder)
    order(accelerator, loader)
    return first, order(accelerator, loader)


def seedable(new_accelerator, folder):
    options = {"dataloader_config": accelerate.DataLoaderConfiguration(use_seedable_sampler=True)}
    accelerator = new_accelerator(**options)
    first = first_run(accelerator, folder)
    loader = second_run(new_accelerator(**options), folder)
    loader.set_epoch(1)
    return first, order(accelerator, loader)


def set_epoch(new_accelerator, folder):
    accelerator = new_accelerator()
    first = first_run(accelerator, folder)
    loader = second_run(new_accelerator(), folder)
    loader.set_epoch(1)
    return first, order(accelerator, loader)


def seedable_alone(new_accelerator, folder):
    options = {"dataloader_config": accelerate.DataLoaderConfiguration(use_seedable_sampler=True)}
    accelerator = new_accelerator(**options)
    return first_run(accelerator, folder), order(accelerator, second_run(new_accelerator(**options), folder))


VARIANTS = {v.__name__: v for v in (failing, fixed, seedable, set_epoch, seedable_alone)}


def train(variant, accelerator):
    def new_accelerator(**options):
        return Accelerator(cpu=accelerator == "cpu", **options)

    new_accelerator()
    with tempfile.TemporaryDirectory() as folder:
        folders = [folder]
        broadcast_object_list(folders)  # that of rank 0
        orders = VARIANTS[variant](new_accelerator, folders[0])
        new_accelerator().wait_for_everyone()
    got = len(set(orders))
    assert got == 2, f"different orders in two epochs: expected 2, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
