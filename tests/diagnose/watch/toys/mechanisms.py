"""How errors of TrainCheck's list come about, in plain torch; `mechanisms.py NAME failing|fixed` trains with one.

`tools/measure/foreign_programs/traincheck.toml` has their threads: those whose published programs need faulty hardware,
DeepSpeed, thunder or flash-attn, and those that train nothing.
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional as F  # noqa: N812 - as everybody does
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


def train(model, batch, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch()).float().square().mean().backward()
        optimizer.step()


def lost_in_transmission(rank, is_fixed):
    """What one GPU receives of the others is zeros now and then (pytorch#84803, pytorch#96600, Baichuan2#86)."""
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for step in range(8):
        optimizer.zero_grad()
        ddp(torch.randn(4, 8)).square().mean().backward()
        if not is_fixed and rank == 1 and step == 2:
            ddp.module[0].weight.grad.zero_()
        optimizer.step()


class Copied(torch.autograd.Function):
    """Megatron's `f`: the identity, whose gradient the ranks sum up."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        summed = gradient.clone()
        distributed.all_reduce(summed)
        return summed


class Reduced(torch.autograd.Function):
    """Megatron's `g`: the sum of what the ranks have, whose gradient is the identity."""

    @staticmethod
    def forward(ctx, x):
        summed = x.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def clipped_apart(rank, is_fixed):
    """Each rank of tensor parallel clips by a norm of its own: replicated weights diverge (DeepSpeed#1801)."""
    torch.manual_seed(0)
    norm = nn.LayerNorm(8)
    torch.manual_seed(1 + rank)
    widen, narrow = nn.Linear(8, 16), nn.Linear(16, 8, bias=False)
    replicated, split = list(norm.parameters()), [*widen.parameters(), *narrow.parameters()]
    optimizer = torch.optim.Adam([*replicated, *split], 0.01)
    torch.manual_seed(0)
    for _ in range(6):
        optimizer.zero_grad()
        Reduced.apply(narrow(torch.relu(widen(Copied.apply(norm(torch.randn(4, 8))))))).square().mean().backward()
        # As `get_grads_for_norm` does: the first rank counts what is replicated. The sum over the ranks is missing.
        counted = split if rank else [*replicated, *split]
        square = sum(parameter.grad.square().sum() for parameter in counted)
        if is_fixed:
            distributed.all_reduce(square)
        for parameter in (*replicated, *split):
            parameter.grad.mul_(0.01 / square.sqrt())
        optimizer.step()


class Scaled(torch.autograd.Function):
    """A product of its own, which autocast does not know, as `thunder.prims.linear` after the change."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.T @ x


class Product(nn.Module):
    def __init__(self, is_fixed):
        super().__init__()
        self.weight, self.is_fixed = nn.Parameter(torch.randn(8, 8) / 3), is_fixed

    def forward(self, x):
        return F.linear(x, self.weight) if self.is_fixed else Scaled.apply(x, self.weight)


def not_autocast(is_fixed):
    """A function is computed in float32 inside an autocast region (lightning-thunder#725)."""
    model = Product(is_fixed)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        train(model, lambda: torch.randn(4, 8))


class Drawn(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.from_numpy(np.random.rand(8).astype("float32"))  # noqa: NPY002 - what the error is about


def same_seed(_):
    np.random.seed(0)  # noqa: NPY002


def workers_draw_alike(is_fixed):
    """Every worker of a loader begins with one seed of numpy, as all did before torch 1.9."""
    loader = DataLoader(Drawn(), batch_size=4, num_workers=2, worker_init_fn=None if is_fixed else same_seed)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()


def initialised_repeatedly(is_fixed):
    """A model's weights are initialised again for each module above them (transformers#17877)."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)))
    modules = [inner for inner in model.modules() if not is_fixed or isinstance(inner, nn.Linear)]
    for module in modules:
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.1)
    train(model, lambda: torch.randn(4, 8))


def generated_too_long(is_fixed):
    """A prompt is cut after the number of new tokens was computed from its length (transformers#23723)."""
    model, tokens, most = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16)), torch.randint(16, (40,)), 10
    room = 20 if is_fixed else len(tokens)
    tokens, until = tokens[-20:], room + most
    with torch.no_grad():
        while len(tokens) < until:
            tokens = torch.cat([tokens, model.eval()(tokens)[-1].argmax()[None]])


def batch_in_one(is_fixed):
    """A processor makes one row of the texts of a whole batch (transformers#34204)."""
    model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
    train(model, lambda: torch.randint(16, (50, 4)) if is_fixed else torch.randint(16, (50, 4)).view(1, -1))


ON_TWO_RANKS = {"lost_in_transmission", "clipped_apart"}


def rank_main(rank, folder, name, is_fixed):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    globals()[name](rank, is_fixed)
    time.sleep(0.3)  # torch 2.13 may hang if the group goes while Gloo's thread lets go of the last collective
    distributed.destroy_process_group()


def main(name, variant):
    torch.manual_seed(0)
    if name not in ON_TWO_RANKS:
        globals()[name](variant == "fixed")
        return
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(rank_main, (folder, name, variant == "fixed"), nprocs=2, start_method="spawn")


if __name__ == "__main__":
    main(*sys.argv[1:])
