"""What programs do on two ranks; `ranks.py FOLDER [NAME ...]` writes each rank's results to `FOLDER/RANK.pt`.

As in `alone.py`, each situation begins with the same random numbers; the ranks draw different batches.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import situations
import torch
import torch.distributed as dist
from situations import batch, compiling, run, since, situation
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


def network():
    torch.manual_seed(0)  # the same weights on both ranks
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    torch.manual_seed(1 + dist.get_rank())
    return model


def train(model, optimizer=None, steps=4, forward=None):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9) if optimizer is None else optimizer
    return situations.train(model, optimizer, steps, forward)


@situation
def replicated():
    return train(DistributedDataParallel(network(), static_graph=False, gradient_as_bucket_view=True))


@compiling
def compiled_replica():
    ddp = DistributedDataParallel(network())
    return train(ddp, forward=torch.compile(ddp, backend="eager")), situations.counted()


@since(2, 6)
def compiled_inside():
    model = network()
    model.forward = torch.compile(model.forward, backend="eager", fullgraph=True)
    return train(DistributedDataParallel(model)), situations.counted()


@situation
def checkpointed():
    class Checkpointed(nn.Module):
        def __init__(self, reentrant):
            super().__init__()
            self.first, self.rest, self.reentrant = nn.Linear(4, 4), network(), reentrant

        def forward(self, x):
            return checkpoint(self.rest, self.first(x), use_reentrant=self.reentrant)

    return [train(DistributedDataParallel(Checkpointed(reentrant))) for reentrant in (False, True)]


@situation
def accumulated():
    ddp = DistributedDataParallel(network())
    optimizer = torch.optim.AdamW(ddp.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        with ddp.no_sync():
            ddp(batch()).square().mean().backward()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = ddp(batch()).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        optimizer.step()
    return ddp


@situation
def uneven():
    ddp = DistributedDataParallel(network())
    with ddp.join() if hasattr(ddp, "join") else None:
        return train(ddp, steps=3 + dist.get_rank())


@situation
def unused():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.heads = network(), nn.ModuleList(nn.Linear(4, 1) for _ in range(2))

        def forward(self, x):
            return self.heads[dist.get_rank()](self.body(x))

    torch.manual_seed(0)
    return train(DistributedDataParallel(Heads(), find_unused_parameters=True))


@situation
def adversaries():
    generator, critic = (DistributedDataParallel(network()) for _ in range(2))
    first, second = (torch.optim.Adam(network.parameters()) for network in (generator, critic))
    for _ in range(4):
        second.zero_grad()
        critic(torch.cat([batch(), generator(batch()).detach()])).mean().backward()
        second.step()
        first.zero_grad()
        critic.requires_grad_(False)
        critic(generator(batch())).mean().backward()
        critic.requires_grad_(True)
        first.step()
    return generator, critic


@situation
def averaged_and_taught():
    ddp = DistributedDataParallel(network())
    teacher = copy.deepcopy(ddp.module).requires_grad_(False).eval()
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for _ in range(4):
        x = batch()
        optimizer.zero_grad()
        (ddp(x) - teacher(x)).square().sum().backward()
        optimizer.step()
        for mine, its in zip(teacher.parameters(), ddp.module.parameters(), strict=True):
            mine.lerp_(its, 0.1)
    return ddp, teacher


@situation
def local_sgd():
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hooks
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    ddp = DistributedDataParallel(network())
    own = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
    ddp.register_comm_hook(hooks.PostLocalSGDState(None, own, start_localSGD_iter=2), hooks.post_localSGD_hook)
    inner = torch.optim.SGD(ddp.parameters(), 0.1)
    return train(ddp, PostLocalSGDOptimizer(inner, PeriodicModelAverager(2, warmup_steps=2)), 6)


def average_parameters(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data /= dist.get_world_size()


@situation
def local_sgd_by_hand():
    model = network()
    for _ in range(3):
        train(model, steps=2)
        average_parameters(model)
    return model


@situation
def local_sgd_without_sync():
    ddp = DistributedDataParallel(network())
    for _ in range(3):
        with ddp.no_sync():
            train(ddp, steps=2)
        average_parameters(ddp)
    return ddp


@situation
def compressed():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    half = DistributedDataParallel(network())
    half.register_comm_hook(None, default_hooks.fp16_compress_hook)
    ranked = DistributedDataParallel(network())
    ranked.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    return train(half), train(ranked)


@situation
def sharded_optimizer():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    ddp = DistributedDataParallel(network())
    return train(ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01))


@situation
def forward_replaced():
    forward = DistributedDataParallel.forward
    calls = []

    def mine(self, *args, **kwargs):
        calls.append(1)
        return forward(self, *args, **kwargs)

    DistributedDataParallel.forward = mine
    try:
        return train(DistributedDataParallel(network())), calls
    finally:
        DistributedDataParallel.forward = forward


@since(2, 6)  # before, the reduce-scatter that it needs is not in Gloo
def fully_sharded():
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(network(), device_id=torch.device("cpu"), use_orig_params=True)
    return list(train(model).parameters())


@since(2, 6)
def fully_sharded_modules():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = network()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
    return [network.to_local() for network in train(model).parameters()]


@since(2, 6)
def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = network()
    torch.manual_seed(0)  # both ranks see the same batches
    parallelize_module(model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return [network.to_local() if hasattr(network, "to_local") else network for network in train(model).parameters()]


def main(rank, folder, names):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    run(Path(folder, f"{rank}.pt"), names)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.multiprocessing.start_processes(main, (sys.argv[1], sys.argv[2:]), 2, start_method="fork")
