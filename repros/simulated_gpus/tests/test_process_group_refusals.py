"""Process groups: calls that NCCL refuses, and so does the group of sim.

NCCL's messages were read from PyTorch's CUDA library (the texts of ProcessGroupNCCL.cpp), not observed on a GPU.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
if TORCH < (2, 1):
    reason = "torch 2.0 has no process-group backends for devices other than the CPU and CUDA"
    pytest.skip(reason, allow_module_level=True)

from repros.simulated_gpus.tests.ranks import Ranks, first_error, ones  # noqa: E402

dist = torch.distributed


REFUSED = {
    "a CPU tensor": (
        lambda: dist.all_reduce(ones(device="cpu")),
        "RuntimeError: No backend type associated with device type cpu",
    ),
    "a CPU tensor among sim tensors": (
        lambda: dist.all_gather([ones(device="cpu"), ones(device="cpu")], ones()),
        "ValueError: Tensors must be CUDA and dense",
    ),
    "int16": (
        lambda: dist.all_reduce(ones(dtype=torch.int16)),
        "TypeError: Input tensor data type is not supported for NCCL process group: Short",
    ),
    "int16, moved": (
        lambda: dist.broadcast(ones(dtype=torch.int16), 0),
        "TypeError: Input tensor data type is not supported for NCCL process group: Short",
    ),
    "the average of bools": (
        lambda: dist.all_reduce(ones(dtype=torch.bool), op=dist.ReduceOp.AVG),
        "TypeError: Cannot use ReduceOp.AVG with boolean inputs",
    ),
    "a premultiplied sum of integers": (
        lambda: dist.all_reduce(
            ones(dtype=torch.int32), op=torch._C._distributed_c10d._make_nccl_premul_sum(2.0)
        ),
        "TypeError: PreMulSum Data type must be half, float, bfloat16 or double",
    ),
    "a tensor with gaps": (lambda: dist.all_reduce(ones(4, 4)[:, ::2]), "ValueError: Tensors must be contiguous"),
    "an output of another type": (
        lambda: dist.all_gather_into_tensor(ones(4, dtype=torch.int32), ones(2)),
        "TypeError: output tensor must have the same type as input tensor",
    ),
    "an output of another size": (
        lambda: dist.all_gather_into_tensor(ones(3), ones(2)),
        "ValueError: output tensor size must be equal to world_size times input tensor size",
    ),
    "an input of another size": (
        lambda: dist.reduce_scatter_tensor(ones(3), ones(4)),
        "ValueError: input tensor must be the same size as output size times world size",
    ),
}  # fmt: skip


def _refusals(rank: int) -> dict[str, str]:
    found = {name: first_error(call) for name, (call, _) in REFUSED.items()}
    dist.barrier()  # Gloo's own refusals come late and make this fail
    return found


def test_what_nccl_refuses_is_refused_at_once_and_leaves_the_group_intact(bound_ranks: Ranks) -> None:
    expected = {name: words for name, (_, words) in REFUSED.items()}
    assert bound_ranks.call(_refusals) == [expected, expected]


ONE_DEVICE = """
import os
import sys

import torch
from torch import distributed

def run(rank):
    distributed.init_process_group("nccl", init_method=f"file://{sys.argv[1]}/store", rank=rank, world_size=2)
    distributed.all_reduce(torch.ones(2, device="cuda"))


if __name__ == "__main__":
    context = torch.multiprocessing.get_context("fork")
    ranks = [context.Process(target=run, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    os._exit(not all(rank.exitcode for rank in ranks))  # 0 if both failed
"""


def test_two_ranks_on_one_device_are_refused_in_nccls_words(collectives: Any, run_warm: Any, tmp_path: Path) -> None:
    ended = run_warm(ONE_DEVICE, str(tmp_path))
    words = [line for line in ended.stderr.splitlines() if "Duplicate GPU detected" in line]
    # The first rank finds no other device in the store, and waits in its collective.
    assert ended.returncode == 0, ended.stderr
    assert any(re.search(r"rank [01] and rank [01] both on CUDA device 1000$", line) for line in words), ended
    assert "DistBackendError: NCCL error in:" in ended.stderr
