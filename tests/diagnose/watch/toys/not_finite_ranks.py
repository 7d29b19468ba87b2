"""Two ranks, of which one gets values that are not finite; `not_finite_ranks.py NAME` runs both."""

from __future__ import annotations

import math
import sys
import tempfile

import torch
from not_finite import BAD, Net, batches, step_on
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

CUDA = torch.cuda.is_available()


def replicated():
    torch.manual_seed(0)
    model = Net(nn.Tanh())
    return DistributedDataParallel(model, device_ids=[distributed.get_rank()] if CUDA else None)


def bad_on_one(rank):
    model = replicated()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step, x in batches():
        step_on(optimizer, model(x * (math.inf if (rank, step) == (1, BAD) else 1)).square().mean())


def root_of_zero_on_all(rank):
    model = replicated()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step, x in batches():
        output = model(x)
        loss = output.square().mean()
        if step == BAD:
            loss = loss + (output - output.detach()).square().sum().sqrt()
        step_on(optimizer, loss)


def run(rank, name, folder):
    if CUDA:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if CUDA else "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    torch.manual_seed(1 + rank)
    globals()[name](rank)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        start = "spawn" if CUDA else "fork"
        torch.multiprocessing.start_processes(run, (sys.argv[1], place), 2, start_method=start)
