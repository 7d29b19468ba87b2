# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9020"
# title = "Two ranks that seem to wait for each other for ever"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9020"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 300
#
# [tool.repro.variants.failing]
# about = "rank 1 sleeps"
# ends = "hang"
#
# [tool.repro.variants.sleeps_before_a_group]
# outcome = "fails"
# about = "rank 1 sleeps, and rank 0 waits in the store, where torch 2.1 takes any signal for an error"
#
# [tool.repro.variants.computes]
# outcome = "fails"
# about = "rank 1 is in one long call into C"
#
# [tool.repro.variants.compiles]
# outcome = "fails"
# about = "rank 1 waits for a compiler"
#
# [tool.repro.variants.compiles_beside]
# outcome = "fails"
# about = "both ranks wait for a message that rank 1 sends from another thread, after a compiler has ended"
#
# [tool.repro.variants.loader_sleeps]
# outcome = "fails"
# about = "rank 1 waits for a data loader's worker, which sleeps"
#
# [tool.repro.variants.thread_sleeps]
# outcome = "fails"
# about = "both ranks wait for a message that a sleeping thread of rank 1 sends"
#
# [tool.repro.variants.stopped]
# outcome = "fails"
# about = "rank 1 is stopped (SIGSTOP) while it waits, and goes on"
#
# [tool.repro.variants.slowed]
# outcome = "fails"
# about = "both ranks are stopped for 99 of 100 parts of the time"
#
# [tool.repro.variants.starved]
# outcome = "fails"
# about = "both ranks get what a busy process leaves to the scheduler's idle class"
#
# [tool.repro.variants.times_out]
# outcome = "fails"
# about = "the ranks wait for each other until the process group's timeout"
#
# [tool.repro.variants.group_times_out]
# outcome = "fails"
# about = "the same in a further group, with a timeout of its own"
# ///
"""Wait for the other rank, longer than the evidence of a hang takes, and return."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

LONG = 15.0
GO, ANSWER = 5, 6
COMPILED = """
constexpr unsigned long sum() { unsigned long s = 0; for (long i = 0; i < %d; ++i) s += i ^ (s >> 3); return s; }
static_assert(sum() != 1, "");
"""


def failing(rank):
    if rank == 1:
        time.sleep(LONG)
    dist.all_reduce(torch.ones(1))


def sleeps_before_a_group(rank):
    if rank == 1:
        time.sleep(LONG)
    dist.new_group([0, 1])


def computes(rank):
    if rank == 1:
        begun = time.process_time()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 200_000)
        rounds = int(200_000 * LONG / (time.process_time() - begun))
        hashlib.pbkdf2_hmac("sha256", b"", b"", rounds)
    dist.all_reduce(torch.ones(1))


def compiles(rank):
    if rank == 1:
        compile_for_long()
    dist.all_reduce(torch.ones(1))


def compile_for_long():
    options = ["-std=c++17", "-fconstexpr-ops-limit=100000000000", "-fconstexpr-loop-limit=2147483647", "-fsyntax-only"]
    command = [shutil.which("g++"), *options, "-x", "c++", "-"]
    begun, rounds = time.monotonic(), 1_000_000
    subprocess.run(command, input=COMPILED % rounds, text=True, check=True)
    rounds = int(rounds * LONG / (time.monotonic() - begun))
    subprocess.run(command, input=COMPILED % rounds, text=True, check=True)


def exchange_after(rank, act):
    """Let a thread of rank 1 act and then send what both main threads wait for."""
    if rank == 0:
        dist.recv(torch.zeros(1), src=1, tag=GO)
        dist.send(torch.ones(1), dst=1, tag=ANSWER)
        return

    def go():
        act()
        dist.send(torch.ones(1), dst=0, tag=GO)

    threading.Thread(target=go).start()
    dist.recv(torch.zeros(1), src=0, tag=ANSWER)


def compiles_beside(rank):
    exchange_after(rank, compile_for_long)


def thread_sleeps(rank):
    exchange_after(rank, lambda: time.sleep(LONG))


class Slow:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        time.sleep(LONG)
        return torch.ones(1)


def loader_sleeps(rank):
    if rank == 1:
        next(iter(DataLoader(Slow(), num_workers=1)))
    dist.all_reduce(torch.ones(1))


def stopped(rank):
    """Rank 1 is stopped before rank 0 sends, so both are in `recv` and use no processor."""
    if rank == 0:
        time.sleep(3)
        dist.send(torch.ones(1), dst=1, tag=GO)
        dist.recv(torch.zeros(1), src=1, tag=ANSWER)
        return
    pid = os.getpid()
    subprocess.Popen(["sh", "-c", f"sleep 1; kill -STOP {pid}; sleep {LONG}; kill -CONT {pid}"])
    dist.recv(torch.zeros(1), src=0, tag=GO)
    dist.send(torch.ones(1), dst=0, tag=ANSWER)


def reduce_for_long(size):
    """Reduce tensors until it is late for one of the ranks."""
    begun, go_on = time.monotonic(), torch.ones(1)
    while go_on:
        dist.all_reduce(torch.ones(size))
        go_on.fill_(time.monotonic() < begun + LONG)
        dist.all_reduce(go_on, op=dist.ReduceOp.MIN)


SLOW_DOWN = """
import os, signal, sys, time
pid = int(sys.argv[1])
while os.getppid() == pid:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.495)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.005)
"""


def slowed(rank):
    subprocess.Popen([sys.executable, "-S", "-c", SLOW_DOWN, str(os.getpid())])
    reduce_for_long(100_000)


BUSY = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    pass
"""


def starved(rank):
    """Give the rank, all its threads, less than a hundredth of a processor, which a process outside the cell has."""
    cpu = min(os.sched_getaffinity(0))
    if rank == 0:
        subprocess.Popen([sys.executable, "-S", "-c", BUSY, str(cpu), str(LONG)], env={}, start_new_session=True)
    for thread in map(int, os.listdir("/proc/self/task")):
        os.sched_setaffinity(thread, {cpu})
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    reduce_for_long(500_000)


def times_out(rank):
    dist.recv(torch.zeros(1), src=1 - rank)


def group_times_out(rank):
    group = dist.new_group([0, 1], dt.timedelta(seconds=LONG))
    dist.recv(torch.zeros(1), src=1 - rank, group=group)


VARIANTS = {
    act.__name__: act
    for act in (
        failing,
        sleeps_before_a_group,
        computes,
        compiles,
        compiles_beside,
        loader_sleeps,
        thread_sleeps,
        stopped,
        slowed,
        starved,
        times_out,
        group_times_out,
    )
}


def main(variant="failing", strategy="plain", accelerator="cpu"):
    rank = int(os.environ["RANK"])
    options = {"timeout": dt.timedelta(seconds=LONG)} if variant == "times_out" else {}
    dist.init_process_group("gloo", rank=rank, world_size=2, **options)
    VARIANTS[variant](rank)


if __name__ == "__main__":
    main(*sys.argv[1:])
