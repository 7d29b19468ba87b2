"""Programs whose ranks hang over Gloo, each with a dump of its flight recorder; a test runs them on a real torch.

Without a GPU there is no NCCL and no watchdog, but Gloo has a flight recorder, too, from torch 2.9 on. A thread of each
rank writes its dump once both ranks are stuck, as the watchdog does after a timeout.
"""

from __future__ import annotations

HEAD = """
import os, sys, threading, time
import torch, torch.distributed as dist
from torch._C import _distributed_c10d as c10d

FOLDER, FORMAT = sys.argv[1:]
RANK = int(os.environ["RANK"])
dist.init_process_group("gloo")
READY = dist.distributed_c10d._get_default_store()


def write_dump():
    READY.set(f"stands-{RANK}", "")
    READY.wait([f"stands-{rank}" for rank in range(dist.get_world_size())])
    time.sleep(1)
    raw = c10d._dump_fr_trace() if FORMAT == "pickle" else c10d._dump_fr_trace_json()
    with open(f"{FOLDER}/part_{RANK}", "wb") as file:
        file.write(raw if isinstance(raw, bytes) else raw.encode())
    os.replace(f"{FOLDER}/part_{RANK}", f"{FOLDER}/trace_rank_{RANK}")
    # Not by the store, which ends with the rank that serves it.
    while not all(os.path.exists(f"{FOLDER}/trace_rank_{rank}") for rank in range(dist.get_world_size())):
        time.sleep(0.1)
    os._exit(0)


def stand_still():
    threading.Timer(2, write_dump).start()
"""

LEAVES_EARLY = (
    HEAD
    + """
def average(value):
    dist.all_reduce(value)

for batch in range(3 if RANK == 0 else 2):
    if batch == 2 or (RANK == 1 and batch == 1):
        stand_still()
    average(torch.ones(3))
time.sleep(60)
"""
)
"""Rank 1 has fewer batches, and leaves the loop."""

OTHER_CALL = (
    HEAD
    + """
dist.all_reduce(torch.ones(1))
stand_still()
if RANK == 0:
    dist.broadcast(torch.ones(5), src=1)
else:
    dist.all_reduce(torch.ones(4, 4))
time.sleep(60)
"""
)
"""Rank 0 evaluates, and rank 1 goes on with training."""

SUBGROUP = (
    HEAD
    + """
pair = dist.new_group([0, 2])
dist.all_reduce(torch.ones(1))
stand_still()
if RANK == 0:
    dist.all_reduce(torch.ones(2), group=pair)
time.sleep(60)
"""
)
"""Rank 0 waits in a process group with rank 2, in which rank 2 has made no call."""

DUMPS_LATER = """
import json, os, sys, threading, time
import torch
import torch.distributed
from torch._C import _distributed_c10d as c10d

FOLDER = sys.argv[1]
RANK = os.environ["RANK"]
STILL = 10


def write_dump():
    calls, still = [], 0
    while still < STILL:  # seconds; a busy machine delays the calls, too
        time.sleep(1)
        now = [entry["state"] for entry in json.loads(c10d._dump_fr_trace_json()).get("entries", [])]
        still = still + 1 if now and now == calls else 0
        calls = now
    store = torch.distributed.distributed_c10d._get_default_store()
    store.set(f"stands-{RANK}", "")
    store.wait(["stands-0", "stands-1"])
    with open(f"{FOLDER}/part_{RANK}", "wb") as file:
        file.write(c10d._dump_fr_trace())
    os.replace(f"{FOLDER}/part_{RANK}", f"{FOLDER}/trace_rank_{RANK}")
    # Not by the store, which ends with the rank that serves it.
    while not all(os.path.exists(f"{FOLDER}/trace_rank_{rank}") for rank in (0, 1)):
        time.sleep(0.1)
    os._exit(0)


real = torch.distributed.init_process_group


def start(*words, **named):
    real(*words, **named)
    threading.Thread(target=write_dump, daemon=True).start()


torch.distributed.init_process_group = torch.distributed.distributed_c10d.init_process_group = start
"""
"""Goes before a program that makes its own process group, and writes the dumps once its ranks are stuck for 10 s."""
