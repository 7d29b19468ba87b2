"""Programs of two ranks with accelerate and datasets: `failing`, one for each check, and `healthy` ones."""

from __future__ import annotations

import os
import sys

import numpy as np
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from datasets import Dataset
from torch import nn
from torch.distributed import run
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, DistributedSampler, Subset

SEVEN, EIGHT = torch.arange(7), torch.arange(8)


def prepare(accelerator, data, size=2, **options):
    return accelerator.prepare(DataLoader(data, batch_size=size, **options))


def gather_later(accelerator, data):
    accelerator.gather_for_metrics(torch.cat(list(prepare(accelerator, data))))


def gather_at_the_last(accelerator, data):
    seen, loader = [], prepare(accelerator, data)
    for number, batch in enumerate(loader, 1):
        seen.append(batch)
        if number == len(loader):
            accelerator.gather_for_metrics(torch.cat(seen))


def gather_each(accelerator, data):
    for batch in prepare(accelerator, data):
        accelerator.gather_for_metrics((batch, {"loss": batch.sum()}))
    accelerator.gather_for_metrics(batch.sum())
    accelerator.gather_for_metrics(torch.zeros(2))


def schedule(accelerator, length, prepared=True, steps=4, pace=True):
    accelerator.step_scheduler_with_optimizer = pace
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=length)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.rand(2 * steps, 1)))
    scheduler = accelerator.prepare(scheduler) if prepared else scheduler
    for batch in loader:
        accelerator.backward(model(batch).mean())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


def prepare_sharded():
    # It sets a variable of the process, which this removes again.
    accelerator = Accelerator(cpu=True, fsdp_plugin=FullyShardedDataParallelPlugin())
    accelerator.prepare(nn.Linear(1, 1))
    os.environ.pop("ACCELERATE_USE_FSDP", None)


def rows():
    return Dataset.from_dict({"x": range(100)})


def failing(accelerator, rank):
    gather_later(accelerator, SEVEN)
    gather_at_the_last(accelerator, SEVEN)
    schedule(accelerator, 4)
    prepare(accelerator, EIGHT, sampler=DistributedSampler(EIGHT))
    prepare(accelerator, Subset(EIGHT, range(rank, 8, 2)))
    rows().train_test_split(test_size=0.2)
    prepare_sharded()


def healthy(accelerator, rank):
    gather_each(accelerator, SEVEN)
    gather_later(accelerator, EIGHT)
    gather_at_the_last(accelerator, EIGHT)
    schedule(accelerator, 8)
    schedule(accelerator, 4, prepared=False)
    schedule(accelerator, 4, pace=False)
    schedule(accelerator, 4, steps=3)
    schedule(accelerator, 4, steps=6)  # a warm-up
    list(DataLoader(EIGHT, sampler=DistributedSampler(EIGHT)))
    prepare(accelerator, Subset(EIGHT, range(4)))
    rows().train_test_split(test_size=0.2, seed=rank)  # it says so
    rows().train_test_split(test_size=0.2, shuffle=False)
    rows().shard(2, rank).train_test_split(test_size=0.2)  # of what this rank alone has
    rows().shuffle()
    np.random.seed(0)  # noqa: NPY002 - the generator that datasets draws from
    rows().train_test_split(test_size=0.2)
    rows().shuffle().select(range(20))
    rows().shuffle().shard(2, rank)


def train():
    accelerator = Accelerator(cpu=True)
    rank = accelerator.process_index
    np.random.seed(rank + 1)  # noqa: NPY002 - as `set_seed(..., device_specific=True)` does
    {"failing": failing, "healthy": healthy}[sys.argv[1]](accelerator, rank)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])
