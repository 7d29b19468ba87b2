"""Replicas whose gradients one rank changes after the reduction, and neighbours; prints what was found, as JSON."""

from __future__ import annotations

import json
import tempfile

import torch
from incode import leave, names
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from repros.diagnose.watch import watching


class Checkpointed(nn.Module):
    def __init__(self, reentrant, calls):
        super().__init__()
        self.block, self.reentrant, self.calls = nn.Linear(2, 2), reentrant, calls

    def forward(self, x):
        for _ in range(self.calls):
            x = checkpoint(self.block, x, use_reentrant=self.reentrant)
        return x


def make(kind):
    if "large" in kind:
        return nn.Linear(2, 300_000)
    if "checkpoint" not in kind:
        return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    return Checkpointed("reentrant" in kind, 1 if "once" in kind else 2)


def change(kind, model, optimizer, number):
    """Do between the backward and the step what only this rank does."""
    if "noise" in kind:
        for part in model.parameters():
            gradient = part.grad.data if "by_data" in kind else part.grad
            gradient.add_(torch.randn_like(part))
    elif kind == "another_limit":
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    elif kind == "zeroed":
        optimizer.zero_grad(set_to_none=False)
    elif kind == "another_step" and number == 0:
        optimizer.step()


def rank_main(rank, folder, kind):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = make(kind)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    torch.manual_seed(rank)
    for number in range(4):
        optimizer.zero_grad()
        ddp(torch.randn(4, 2).requires_grad_()).square().sum().backward()
        if rank == 1 or kind == "clipped_alike":
            change("another_limit" if kind == "clipped_alike" else kind, model, optimizer, number)
        optimizer.step()
    leave()


KINDS = (
    *("noise", "another_limit", "zeroed", "another_step", "noise_beside_a_checkpoint", "clipped_alike"),
    *("noise_in_a_large_layer", "noise_by_data_in_a_large_layer", "large_layer"),
    *("reentrant_checkpoint_once", "reentrant_checkpoint_twice", "reentrant_checkpoint_once_noise"),
)

if __name__ == "__main__":
    found = {}
    for chosen in KINDS:
        with tempfile.TemporaryDirectory() as place, watching() as findings:
            multiprocessing.start_processes(rank_main, (place, chosen), nprocs=2, start_method="fork")
        found[chosen] = names(findings)
    print(json.dumps(found))
