"""Programs that watch themselves; `incode.py NAME [spawn|fork]` prints the checks with findings, by block, as JSON."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import weakref

import torch
import trainings
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from repros.diagnose.watch import lightning_callback, watching


def leave():
    """End the process group after a moment: torch 2.13 may hang while Gloo's thread lets go of the last collective.

    That thread waits for the GIL in `~AsyncWork`, and the destructor of the group, which has the GIL, for that thread.
    """
    time.sleep(0.3)
    distributed.destroy_process_group()


def names(findings):
    return [" ".join([finding.check, *[id_.repro.id for id_ in ids[:1]]]) for finding, ids in findings]


def blocks():
    found = []
    for training, options in (
        (trainings.other_parameters, {}),
        (trainings.plain, {}),
        (trainings.other_parameters, {"only": ["steps"]}),
        (trainings.other_parameters, {"skip": ["steps"]}),
    ):
        with watching(**options) as findings:
            training()
        count = len(findings)
        trainings.other_parameters()  # after the block: nobody listens
        assert len(findings) == count
        found.append(names(findings))
    return found


def nested():
    with watching() as outer:
        with watching() as inner:
            trainings.other_parameters()
        assert outer == []
        trainings.other_parameters()
    return [names(outer), names(inner)]


def drift(rank, kind):
    checks = sys.modules["repros.diagnose.watch.inside.checks.torch_distributed.ranks_wait_apart"]
    checks.PERIOD, checks.STILL = 0.5, 3.0
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    if rank == 0 and kind == "apart":
        threading.Timer(15, os._exit, (1,)).start()  # long before the group's timeout
        distributed.barrier()
    if rank == 0:
        time.sleep(8)  # the other waits for it
    ddp(torch.ones(1, 2)).sum().backward()
    leave()


def looked_at():
    """Be looked at while a function runs; its tensors go with it, and the thread that looks ends before Python."""
    checks = sys.modules["repros.diagnose.watch.inside.checks.torch_distributed.ranks_wait_apart"]
    checks.PERIOD = 0.01
    atexit.register(lambda: any(thread.name == "repros-watch" for thread in threading.enumerate()) and os._exit(1))
    ddp = DistributedDataParallel(nn.Linear(2, 1))

    def holding():
        layer = nn.Linear(2, 1)
        time.sleep(1)
        checks.PERIOD = 60
        time.sleep(0.5)
        return weakref.ref(layer)

    assert holding()() is None
    del ddp
    leave()


def rank_main(rank, folder, kind):
    # A file and not a port: one that is free now may be taken when a rank has imported torch.
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    if kind in {"apart", "late"}:
        drift(rank, kind)
        return
    if kind == "looked_at":
        looked_at()
        return
    data = torch.arange(16.0).view(8, 2)
    share = 0 if kind == "same_share" else rank
    loader = DataLoader(data, sampler=DistributedSampler(data, num_replicas=2, rank=share, shuffle=False))
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(ddp.parameters(), 0.001)
    for number, batch in enumerate(loader):
        if kind == "converted" and number == 1:
            ddp.double().float()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "other_precision" and rank == 1):
            output = (ddp.module if kind == "bypassed" else ddp)(batch)
        output.float().sum().backward()
        optimizer.step()
    if kind == "other_device":
        with contextlib.suppress(RuntimeError):  # NotImplementedError, too
            distributed.all_reduce(torch.ones(2, device="meta"))
    leave()


def ranks(kind, method="spawn"):
    ends = (multiprocessing.ProcessExitedException, multiprocessing.ProcessRaisedException)
    with tempfile.TemporaryDirectory() as folder, watching() as findings:
        hangs = contextlib.suppress(*ends) if kind == "apart" else contextlib.nullcontext()
        with hangs:
            multiprocessing.start_processes(rank_main, (folder, kind), nprocs=2, start_method=method)
    return [names(findings)]


def trainer():
    from lightning.pytorch import LightningModule, Trainer

    class Model(LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = trainings.network()

        def training_step(self, batch, _):
            return self.layers(batch).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    callback = lightning_callback()
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = Trainer(accelerator="cpu", devices=1, max_epochs=1, callbacks=[callback], **quiet)
    trainer.fit(Model().eval(), torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=8))
    callback.close()
    return [names(callback.findings)]


if __name__ == "__main__":
    programs = {"blocks": blocks, "nested": nested, "trainer": trainer}
    name, *method = sys.argv[1:]
    print(json.dumps(programs[name]() if name in programs else ranks(name, *method)))
