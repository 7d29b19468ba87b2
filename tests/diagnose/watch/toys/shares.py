"""What two ranks read and exchange, healthy and not; `shares.py NAME` runs both."""

from __future__ import annotations

import os
import sys
import tempfile
import time

import torch
from data import DATA, network, step
from torch import distributed, multiprocessing
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset, random_split


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), 0.1)


def train(model, loader, epochs=3, after=lambda model: None, forward=None):
    optimizer = optimizer_of(model)
    for epoch in range(epochs):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x) if forward is None else forward(x), y).backward()
            after(model)
            optimizer.step()
    return model


def wrapped():
    torch.manual_seed(0)
    return DistributedDataParallel(network())


def shared(data=DATA, **options):
    sampler = DistributedSampler(data, **options)
    train(wrapped(), DataLoader(data, 4, sampler=sampler), 1)


# Which data.


def own_shuffle(rank):
    shared(seed=rank)


def split_by_chance(rank):
    torch.manual_seed(rank)
    shared(random_split(DATA, [48, 16])[0])


def split_before(rank):
    shared(Subset(DATA, range(rank, 64, 2)))


def one_shuffle(rank):
    train(wrapped(), DataLoader(DATA, 4, shuffle=True))


def no_sampler(rank):
    train(wrapped(), DataLoader(DATA, 4))


class Imputing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return self.inner(x.nan_to_num())


def missing_values():
    x, y = DATA.tensors
    x = x.clone()
    x[:, 0] = float("nan")
    return TensorDataset(x, y)


def no_sampler_and_missing_values(rank):
    torch.manual_seed(0)
    train(DistributedDataParallel(Imputing()), DataLoader(missing_values(), 8))


def shares_with_missing_values(rank):
    torch.manual_seed(0)
    data = missing_values()
    train(DistributedDataParallel(Imputing()), DataLoader(data, 8, sampler=DistributedSampler(data)))


def fed_by_name(rank):
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, values):
            return self.inner(values)

    torch.manual_seed(0)
    model = DistributedDataParallel(Named())
    train(model, DataLoader(DATA, 4, shuffle=True), forward=lambda x: model(values=x))


def shares(rank):
    shared()


def shares_of_one_split(rank):
    torch.manual_seed(0)
    shared(random_split(DATA, [48, 16])[0])


def orders_of_their_own(rank):
    model = wrapped()
    torch.manual_seed(rank)
    train(model, DataLoader(DATA, 4, shuffle=True))


def parts_of_their_own(rank):
    train(wrapped(), DataLoader(Subset(DATA, range(rank, 64, 2)), 4))


def one_batch(rank):
    model = wrapped()
    optimizer, (x, y) = optimizer_of(model), next(iter(DataLoader(DATA, 4)))
    for _ in range(12):
        step(model, optimizer, x, y)


def shared_twice(rank):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = DataLoader(DATA, 4, sampler=DistributedSampler(DATA))
    torch.manual_seed(0)
    model = network()
    model, optimizer, loader = accelerator.prepare(model, optimizer_of(model), loader)
    for x, y in loader:
        step(model, optimizer, x, y)


def shared_by_accelerate(rank):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = network()
    model, optimizer, loader = accelerator.prepare(model, optimizer_of(model), DataLoader(DATA, 4, shuffle=True))
    for _ in range(3):
        for x, y in loader:
            step(model, optimizer, x, y)


# Which loss.


def train_on_half_of_the_loss(divide):
    model = wrapped()
    optimizer = optimizer_of(model)
    for x, y in DataLoader(DATA, 4, sampler=DistributedSampler(DATA)):
        optimizer.zero_grad()
        divide(functional.cross_entropy(model(x), y)).backward()
        optimizer.step()


def divided_by_ranks(rank):
    world_size = distributed.get_world_size()
    train_on_half_of_the_loss(lambda loss: loss / world_size)


def half_of_a_loss(rank):
    train_on_half_of_the_loss(lambda loss: 0.5 * loss)


# What is exchanged.


def plain(after=lambda model: None, epochs=3, seed=0):
    rank = distributed.get_rank()
    torch.manual_seed(seed)
    model = network()
    torch.manual_seed(rank)
    return train(model, DataLoader(DATA, 4, sampler=DistributedSampler(DATA)), epochs, after)


def not_wrapped(rank):
    def count(_):
        distributed.all_reduce(torch.ones(()))  # as for a loss

    plain(count)


def reduced_by_hand(rank):
    def reduce(model):
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad /= 2

    plain(reduce)


def reduced_in_one(rank):
    def reduce(model):
        flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        distributed.all_reduce(flat)
        for parameter, part in zip(
            model.parameters(), flat.split([one.numel() for one in model.parameters()]), strict=True
        ):
            parameter.grad.copy_(part.view_as(parameter) / 2)

    plain(reduce)


def reduced_by_hand_from_other_weights(rank):
    def reduce(model):
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad /= 2

    plain(reduce, seed=rank)


def reduced_by_hand_but_one(rank):
    def reduce(model):
        for parameter in list(model.parameters())[:-2]:
            distributed.all_reduce(parameter.grad)
            parameter.grad /= 2

    plain(reduce)


def averaged_late(rank):
    for parameter in plain().parameters():
        distributed.all_reduce(parameter.data)
        parameter.data /= 2


def ensemble(rank):
    plain(seed=rank)


def search_for_a_rate(rank):
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * (1 + rank))
    for x, y in DataLoader(DATA, 4):
        step(model, optimizer, x, y)


def one_model_on_both(rank):
    torch.manual_seed(0)
    train(network(), DataLoader(DATA, 4))


def parts_of_a_model(rank):
    """Each rank has the half of a pipeline, and what the second one gets is what the first one computes."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
    part = (first, second)[rank]
    optimizer = optimizer_of(part)
    for x, y in [*DataLoader(DATA, 4)]:
        optimizer.zero_grad()
        if rank == 0:
            hidden = part(x)
            distributed.send(hidden.detach(), 1)
            gradient = torch.empty(4, 8)
            distributed.recv(gradient, 1)
            hidden.backward(gradient)
        else:
            hidden = torch.empty(4, 8)
            distributed.recv(hidden, 0)
            hidden.requires_grad_()
            functional.cross_entropy(part(hidden), y).backward()
            distributed.send(hidden.grad, 0)
        optimizer.step()


def rank_main(rank, folder, name):
    # A file and not a port: one that is free now may be taken when a rank has imported torch.
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    globals()[name](rank)
    distributed.barrier()
    time.sleep(0.3)  # torch 2.13 may hang if the group goes while Gloo's thread lets go of the last collective
    distributed.destroy_process_group()


def main(name):
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(rank_main, (folder, name), nprocs=2, start_method="fork")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
