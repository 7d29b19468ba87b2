# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0092"
# title = "A distributed checkpoint gives one rank's random state to all"
# kind = "limitation"
# documented = "https://github.com/pytorch/pytorch/issues/120356"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/120356",
#     "https://github.com/RLinf/RLinf/pull/1570",
# ]
# packages = ["torch"]
# home = "2025-11"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "save torch.get_rng_state() of each rank under one key"
# raises = "AssertionError"
# match = "expected this rank's own random state after the resume, got 1 of 2 ranks with it"
#
# [tool.repro.variants.fixed]
# about = "save it under a key with the rank"
# source = "https://github.com/pytorch/pytorch/issues/120356"
# ///
"""After a resume all ranks draw the same random numbers.

Symptom: dropout masks, augmentations and shuffles are alike on all ranks after a resume from a distributed checkpoint;
positions in the data may be another rank's. Silent.

Cause: `torch.distributed.checkpoint` takes tensors and objects that are not sharded for copies of one value. The
planner keeps one rank's of each key, and every rank reads that.

Fix: put the rank into the key of what is different on each rank.

Watch: no check sees it, since it is not known which draws came before the resume.
"""

import os
import sys
import tempfile

import torch
from torch import distributed
from torch.distributed import checkpoint, run


def failing():
    return "random"


def fixed():
    return f"random_{distributed.get_rank()}"


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def shared_folder():
    folders = [tempfile.mkdtemp() if distributed.get_rank() == 0 else None]
    distributed.broadcast_object_list(folders)
    return folders[0]


def train(variant):
    distributed.init_process_group("gloo")
    folder, key = shared_folder(), VARIANTS[variant]()
    torch.manual_seed(distributed.get_rank())
    own = torch.get_rng_state()
    checkpoint.save({key: own}, checkpoint_id=folder)
    loaded = {key: torch.zeros_like(own)}
    checkpoint.load(loaded, checkpoint_id=folder)
    kept = torch.tensor(int(torch.equal(loaded[key], own)))
    distributed.all_reduce(kept)
    got = kept.item()
    assert got == 2, f"expected this rank's own random state after the resume, got {got} of 2 ranks with it"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
