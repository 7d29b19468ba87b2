"""Common training errors that no repro documents, raised by real code: `python provoked.py NAME [DEVICE]`.

Several resemble a documented failure on purpose: its message from another cause, its cause with another message.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


def shapes(device):
    nn.Linear(4, 2)(torch.ones(3, 5))


def dtypes(device):
    nn.Linear(4, 2)(torch.ones(3, 4, dtype=torch.float64))


def memory(device):
    torch.empty(2**50)


class Broken(Dataset):
    def __init__(self, end):
        self.end = end

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if self.end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(f"sample {index} is damaged:\n  expected 3 channels, got 1")


def loader_worker_raises(device):
    list(DataLoader(Broken("raises"), num_workers=1))


def loader_worker_killed(device):
    list(DataLoader(Broken("killed"), num_workers=1))


def port_taken(device):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)


def _joined(rank, port, backend="gloo", seconds=60):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group(backend, rank=rank, world_size=2, timeout=timedelta(seconds=seconds))


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _leaves(rank, port):
    _joined(rank, port)
    if rank == 1:
        os._exit(0)
    dist.all_reduce(torch.ones(1))


def peer_gone(device):
    mp.spawn(_leaves, args=(_free_port(),), nprocs=2)


def _dawdles(rank, port):
    _joined(rank, port, seconds=3)
    if rank == 1:
        time.sleep(8)
    dist.all_reduce(torch.ones(1))


def collective_timeout(device):
    mp.spawn(_dawdles, args=(_free_port(),), nprocs=2)


def _raises(rank):
    if rank == 1:
        raise ValueError("the learning rate must be positive, got -1.0")
    time.sleep(30)


def spawned_rank_raises(device):
    mp.spawn(_raises, nprocs=2)


def spawned_lambda(device):
    mp.spawn(lambda rank: rank + 1, nprocs=1)


def interrupted(device):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)


def no_module(device):
    import deepspeed_accelerator_of_yesterday  # noqa: F401


def no_file(device):
    torch.load("/data/checkpoints/last.ckpt")


def state_dict(device):
    nn.Linear(4, 2).load_state_dict(nn.Linear(3, 2, bias=False).state_dict())


def backward_twice(device):
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


def modified_in_place(device):
    weight = torch.ones(2, requires_grad=True)
    hidden = weight.exp()
    hidden += 1
    hidden.sum().backward()


def no_gpu(device):
    torch.zeros(1, device="cuda")


def not_finite(device):
    loss = torch.tensor(float("nan"))
    if not torch.isfinite(loss):
        raise ValueError(f"Training stopped: loss is {loss.item()} at step 120")


def recursion(device, depth=0):
    recursion(device, depth + 1)


def group(device):
    raise ExceptionGroup("two shards failed", [OSError("shard 0: disk quota"), RuntimeError("shard 1: bad checksum")])


def _unused(rank, port):
    _joined(rank, port)
    ddp = DistributedDataParallel(_Half())
    for _ in range(2):
        ddp(torch.ones(1, 1)).sum().backward()


class _Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x):
        return self.used(x)


def unused_parameters(device):
    mp.spawn(_unused, args=(_free_port(),), nprocs=2)


def own_assertion(device):
    got = 3.0
    assert got == 2.0, f"expected gradient 2.0, got {got}"


def bare_assertion(device):
    losses = [0.5, 0.7]
    assert losses == sorted(losses, reverse=True)


def two_devices(device):
    """RPR-0002's message on a plain model whose input is on the wrong device."""
    nn.Linear(4, 2).to(f"{device}:1")(torch.ones(3, 4, device=f"{device}:0"))


def input_left_behind(device):
    nn.Linear(4, 2).to(device)(torch.ones(3, 4))


def index_left_behind(device):
    nn.Embedding(4, 2).to(device)(torch.tensor([1, 2]))


def target_left_behind(device):
    nn.functional.cross_entropy(torch.ones(3, 4, device=device), torch.tensor([0, 1, 2]))


def generator_of_the_host(device):
    """RPR-0003's message in a plain loop with a default device."""
    torch.set_default_device(device)
    list(DataLoader(list(range(8)), shuffle=True, generator=torch.Generator("cpu")))


def collective_of_the_host(device):
    """RPR-0001's message from plain torch."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port()))
    dist.init_process_group("nccl", rank=0, world_size=1)
    dist.all_reduce(torch.ones(1))


def unpickled_class(device):
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"config": logging.Formatter()}, f"{folder}/model.pt")
        torch.load(f"{folder}/model.pt", weights_only=True)


def trainer_misconfigured(device):
    from lightning.pytorch import Trainer

    Trainer(accelerator="cpu", devices=1, max_epochs=1, fast_dev_run="yes")


def training_step_raises(device):
    from lightning.pytorch import LightningModule, Trainer

    class Model(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def training_step(self, batch, index):
            return self.layer(batch).sum() + torch.ones(3)[5]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": True}
    Trainer(accelerator="cpu", devices=1, max_epochs=1, **options).fit(Model(), DataLoader(torch.ones(8, 4)))


def all_is_well(device):
    from lightning.pytorch import Trainer
    from lightning.pytorch.demos.boring_classes import BoringModel

    options = {"logger": False, "enable_checkpointing": False, "limit_val_batches": 0}
    Trainer(accelerator="cpu", devices=1, max_epochs=1, limit_train_batches=4, **options).fit(BoringModel())


def masked(device):
    try:
        json.loads('{"lr": 0.1,}')
    except ValueError as error:
        raise RuntimeError("config.json cannot be read") from error


def handled_and_logged(device):
    logging.basicConfig(format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    try:
        {}["lr"]
    except KeyError:
        logging.getLogger("train").exception("no learning rate in the config, 0.1 is used")


class OutOfData(Exception):
    pass


def own_exception(device):
    raise OutOfData("the stream ended after 3 of 10 shards")


def segfault(device):
    faulthandler.enable()
    os.kill(os.getpid(), signal.SIGSEGV)


def wrong_argument(device):
    nn.Linear(4, 2)(torch.ones(3, 4), mask=None)


def exits(device):
    sys.exit("usage: train.py --config FILE")


def main(name, device="cpu"):
    globals()[name](device)


if __name__ == "__main__":
    main(*sys.argv[1:])
