"""Silent errors from public threads; `reported.py NAME [spawn|fork]` trains with that error.

`reported.json` has the threads. Programs of two ranks start them as the second word says.
"""

from __future__ import annotations

import sys
import tempfile
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset
from trainings import network, train


def frozen_head():
    model = network()
    optimizer = torch.optim.Adadelta(model[4].parameters(), lr=1)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("1.")
    train(model, optimizer)


def never_zeroed():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for _ in range(6):
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


def layer_replaced():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model[1] = nn.GroupNorm(2, 8)  # as a tool does that repairs a model
    train(model, optimizer)


def model_rebuilt():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model = network()
    train(model, optimizer)


def best_weights_not_copied():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 3)
    best = model.state_dict()
    train(model, optimizer, 3)
    model.load_state_dict(best)


def clipped_before_unscale():
    model, scaler = network(), torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.randn(8, 4)).square().mean()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(64.0).view(16, 4))


def stream_in_every_worker():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for batch in DataLoader(Stream(), batch_size=2, num_workers=2):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


def eval_after_the_first_epoch():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        train(model, optimizer, 3)
        model.eval()
        with torch.no_grad():
            model(torch.randn(8, 4))


def layers_unfrozen_under_ddp(rank):
    model = network().requires_grad_(requires_grad=False)
    model[4].requires_grad_()
    ddp = DistributedDataParallel(model)
    train(ddp, torch.optim.SGD(model.parameters(), 0.1), 2)
    model.requires_grad_()
    train(ddp, torch.optim.SGD(model.parameters(), 0.1), 3)


def wrapped_now_and_then(rank):
    model = network()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(ddp, optimizer, 1)
    train(model, optimizer, 3)


def weights_loaded_on_one_rank(rank):
    ddp = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    if rank == 0:
        ddp.load_state_dict(DistributedDataParallel(network(), process_group=ALONE[0]).state_dict())
    train(ddp, optimizer)


def epoch_never_set(rank):
    ddp, data = DistributedDataParallel(network()), torch.randn(32, 4)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    for _ in range(3):
        for batch in loader:
            optimizer.zero_grad()
            ddp(batch).square().mean().backward()
            optimizer.step()


def optimizer_before_fsdp(rank):
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(FullyShardedDataParallel(model, device_id=torch.device("cpu")), optimizer)


def schedule_stepped_by_each_process(rank):
    ddp = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=8)
    for _ in range(8):
        train(ddp, optimizer, 1)
        for _ in range(distributed.get_world_size()):
            schedule.step()


def accumulation_not_divided():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        for _ in range(4):
            model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


class AlwaysDropping(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)  # training=True, whatever the mode


def dropout_in_evaluation():
    model = nn.Sequential(nn.Linear(4, 8), AlwaysDropping(), nn.Linear(8, 1))
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    with torch.no_grad():
        model.eval()(torch.randn(8, 4))


ALONE = []
"""The group of rank 0 by itself."""


def rank_main(rank, folder, name):
    # A file and not a port: one that is free now may be taken when a rank has imported torch.
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    ALONE.append(distributed.new_group([0]))
    torch.manual_seed(rank)
    globals()[name](rank)
    time.sleep(0.3)  # torch 2.13 may hang if the group goes while Gloo's thread lets go of the last collective
    distributed.destroy_process_group()


def main(name, method="spawn"):
    torch.manual_seed(0)
    program = globals()[name]
    if not program.__code__.co_argcount:
        program()
        return
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(rank_main, (folder, name), nprocs=2, start_method=method)


if __name__ == "__main__":
    main(*sys.argv[1:])
