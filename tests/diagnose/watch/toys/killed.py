"""Ranks that die of SIGKILL while they train; `killed.py FOLDER MILLISECONDS ...` kills one rank after each time.

The other rank loses its connection and ends by itself; if it still waits to be connected, after the group's timeout. At
last this process dies of SIGKILL, too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def rank(folder, number):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the rank that is left has to say about it
    store, limit = f"file://{folder}/store", timedelta(seconds=30)
    dist.init_process_group("gloo", init_method=store, rank=number, world_size=2, timeout=limit)
    torch.manual_seed(number)  # data of its own
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(ddp.parameters(), 0.01)
    while True:
        optimizer.zero_grad()
        ddp(torch.randn(8, 64)).mean().backward()
        optimizer.step()


def main(folder, *moments):
    torch.set_num_threads(1)
    for turn, moment in enumerate(moments):
        place = f"{folder}/{turn}"
        os.mkdir(place)
        ranks = []
        for number in range(2):
            child = os.fork()
            if child == 0:
                try:
                    rank(place, number)
                except RuntimeError:
                    os._exit(3)
            ranks.append(child)
        time.sleep(int(moment) / 1000)
        os.kill(ranks[1], signal.SIGKILL)
        ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]
        print(*ends, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
