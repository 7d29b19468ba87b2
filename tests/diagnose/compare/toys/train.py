"""A training in plain torch, each of whose words changes how it is computed: `python train.py ranks=ddp accumulate=4`.

It knows nothing of the project. A step's batch is the same 16 rows for each world size and number of passes.
"""

from __future__ import annotations

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, Subset

STEPS, BATCH, WIDTH = 8, 16, 12

words = dict(word.split("=", 1) for word in sys.argv[1:])


def word(name, default=""):
    return words.get(name, default)


class Rows(Dataset):
    """Inputs and targets of a regression."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(STEPS * BATCH, WIDTH, generator=generator)
        self.targets = self.inputs[:, :3].sin() + 0.1 * torch.randn(STEPS * BATCH, 3, generator=generator)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, place):
        return self.inputs[place], self.targets[place]


class Block(nn.Module):
    """A residual block; its dropout is there on request."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH) if word("norm") == "batch" else nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 24), nn.GELU(), nn.Linear(24, WIDTH))
        self.drop = nn.Dropout(float(word("drop", "0")))

    def forward(self, x):
        return x + self.drop(self.layers(self.norm(x)))


class Net(nn.Module):
    """Three blocks and a head."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            if word("checkpoint") and number > 0:  # whose input has a gradient
                x = checkpoint(block, x, use_reentrant=word("checkpoint") == "reentrant")
            else:
                x = block(x)
        return self.head(x)


def wrap(net):
    kind = word("ranks")
    if kind == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        options = {"gradient_as_bucket_view": True, "bucket_cap_mb": 1, "static_graph": True} if word("bucket") else {}
        return DistributedDataParallel(net, **options)
    if kind == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(net, use_orig_params=True, device_id=torch.device("cpu"))
    if kind == "fully_shard":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
        for block in net.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(net, mesh=mesh)
    return torch.compile(net, backend="eager") if word("compile") else net


def make_optimizer(net):
    how = {name: word(name) == "yes" for name in ("foreach", "fused") if word(name)}
    if word("zero"):
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=float(word("lr", "0.01")))
    if word("optimizer", "adamw") == "sgd":
        return torch.optim.SGD(net.parameters(), lr=float(word("lr", "0.05")), momentum=0.9, **how)
    return torch.optim.AdamW(
        net.parameters(), lr=float(word("lr", "0.01")), weight_decay=float(word("decay", "0.1")), **how
    )


def batches(rank, world, begin):
    """Yield for each step the batches of its passes that this rank has."""
    passes = int(word("accumulate", "1"))
    order = torch.randperm(STEPS * BATCH, generator=torch.Generator().manual_seed(2)).tolist()
    mine = [place for start in range(0, len(order), BATCH) for place in order[start : start + BATCH][rank::world]]
    size = BATCH // world // passes
    workers = int(word("workers", "0"))
    left = Subset(Rows(), mine[begin * BATCH // world :])
    loader = iter(DataLoader(left, batch_size=size, num_workers=workers, pin_memory=bool(word("pin"))))
    for _ in range(begin, STEPS):
        yield [next(loader) for _ in range(passes)]


def evaluate(when, plain, net, rank, world):
    """Call a model without gradients on rows of its own, of which each rank has its part, if it is time for that."""
    if word("evaluate") not in when:
        return
    net = plain if word("evaluate") == "bare" else net
    net.train(word("mode") == "train")
    with torch.no_grad():
        for inputs in Rows().inputs[: 2 * BATCH][rank::world].split(int(word("rows", "8"))):
            net(inputs)
    net.train()


def report(loss, world):
    """Print the loss, on request as the mean of all ranks, and on request twice."""
    for _ in range({"": 0, "yes": 1, "twice": 2}[word("log")]):
        mean = loss.detach().clone()
        if world > 1:
            distributed.all_reduce(mean)
        print(f"loss {mean.item() / world:.6f}")


def main():
    if word("ranks"):
        distributed.init_process_group("gloo")
    rank, world = (distributed.get_rank(), distributed.get_world_size()) if word("ranks") else (0, 1)
    if word("seeded", "yes") == "yes":
        torch.manual_seed(0)
    plain = Net()
    net = wrap(plain)
    optimizer = make_optimizer(net)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    begin = int(word("resume", "0"))
    if begin:
        kept = torch.load(word("file"), weights_only=False)
        plain.load_state_dict(kept["net"])
        if word("forget") != "optimizer":
            optimizer.load_state_dict(kept["optimizer"])
        scheduler.load_state_dict(kept["scheduler"])
    for step, passes in enumerate(batches(rank, world, begin), begin):
        optimizer.zero_grad(set_to_none=word("zeros") == "")
        for inputs, targets in passes:
            with torch.autocast("cpu", torch.bfloat16, enabled=bool(word("autocast"))):
                loss = nn.functional.mse_loss(net(inputs), targets)
            (loss / (1 if word("undivided") else len(passes))).backward()
        if word("clip"):
            clipped = nn.Linear(1, 1) if word("clip") == "other" else net
            nn.utils.clip_grad_norm_(clipped.parameters(), 0.5, foreach=word("clip") == "foreach")
        optimizer.step()
        scheduler.step()
        report(loss, world)
        evaluate({"yes", "bare"}, plain, net, rank, world)
        if word("save") == str(step + 1):
            states = {
                "net": plain.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }
            torch.save(states, word("file"))
    evaluate({"end"}, plain, net, rank, world)
    if word("ranks"):
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
    if os.environ.get("RANK", "0") == "0":
        print("trained")
