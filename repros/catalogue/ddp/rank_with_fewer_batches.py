# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0192"
# title = "A rank with fewer batches ends its epoch, and the others wait in DDP for ever"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/38174",
#     "https://github.com/pytorch/pytorch/issues/141069",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/9851",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20404",
#     "https://github.com/k2-fsa/snowfall/issues/152",
#     "https://github.com/microsoft/PyMarlin/issues/80",
#     "https://github.com/mosaicml/composer/issues/3415",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# deadline = 45
#
# [tool.repro.variants.failing]
# about = "three batches on rank 0, two on rank 1, and an evaluation that reduces its score"
# ends = "hang"
#
# [tool.repro.variants.fixed]
# about = "the loop in `with ddp.join()`"
# source = "https://github.com/microsoft/PyMarlin/issues/80"
#
# [tool.repro.variants.shortest]
# outcome = "passes"
# about = "the ranks agree before each batch whether all have one"
# source = "https://github.com/mosaicml/composer/issues/3415"
#
# [tool.repro.variants.sampler]
# outcome = "passes"
# about = "a DistributedSampler, which gives all ranks the same number of samples"
# ///
"""An epoch that never ends on the ranks with more data.

Symptom: the first epoch runs, and at its end some ranks stand still; with NCCL until "Watchdog caught collective
operation timeout ... ALLREDUCE". One rank logs the start of the validation. It depends on the number of samples and of
ranks, so it comes and goes with the data set.

Cause: each backward under DDP reduces gradients with all ranks. An iterable data set that is split by files, a bucket
sampler, a filter or a generator gives ranks different numbers of batches. The rank that is done goes on to another
collective, or to its end.

Fix: `with ddp.join():` answers the collectives of DDP for ranks that are done, and no others: a loop that also reduces
its loss by itself fails under it. It divides the gradients by the number of all ranks, or of those that still have data
(`divide_by_initial_world_size=False`). Or stop all ranks when the first has no more. A map-style data set with
DistributedSampler never parts them.

Apart: lightning and accelerate have rules of their own for uneven loaders. RPR-0071 is what happens to the mean.

Watch: `ranks_wait_apart` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys
from contextlib import nullcontext

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def own_share():
    return range(3 if distributed.get_rank() == 0 else 2)


def failing(ddp):
    return own_share(), nullcontext()


def fixed(ddp):
    return own_share(), ddp.join()


def shortest(ddp):
    def batches():
        mine = iter(own_share())
        while True:
            batch = next(mine, None)
            has_one = torch.tensor(0 if batch is None else 1)
            distributed.all_reduce(has_one, distributed.ReduceOp.MIN)
            if not has_one:
                return
            yield batch

    return batches(), nullcontext()


def sampler(ddp):
    return DistributedSampler(range(5)), nullcontext()


VARIANTS = {v.__name__: v for v in (failing, fixed, shortest, sampler)}


def train(variant):
    distributed.init_process_group("gloo")
    ddp = DistributedDataParallel(nn.Linear(1, 1))
    batches, context = VARIANTS[variant](ddp)
    with context:
        for batch in batches:
            ddp(torch.full((1, 1), float(batch))).sum().backward()
    distributed.all_reduce(torch.ones(2))  # the score of an evaluation
    distributed.barrier()


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
