"""Process groups in diagnostics: collectives in a profiler's record, hashes in the debug log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
if TORCH < (2, 1):
    reason = "torch 2.0 has no process-group backends for devices other than the CPU and CUDA"
    pytest.skip(reason, allow_module_level=True)

from repros.simulated_gpus.tests.ranks import Ranks, ones  # noqa: E402

dist = torch.distributed


def _profiled(rank: int) -> list[Any]:
    """Return the collectives that a profiler shows under NCCL's names, with the shapes of their inputs."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(ones(2))
        dist.all_gather([ones(3), ones(3)], ones(3))
    events = [event for event in profile.function_events if event.name.startswith("nccl:")]
    return [[event.name, event.input_shapes, event.is_async] for event in events]


def _profiled_between_two(rank: int) -> list[Any]:
    """Return what a profiler shows of a tensor that is sent and one that is received, with its shape."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.send(ones(4), 1) if rank == 0 else dist.recv(ones(4), 0)
    return [[e.name, e.input_shapes] for e in profile.function_events if e.name.startswith("nccl:")]


def test_a_profiler_shows_what_ranks_send_and_receive(bound_ranks: Ranks) -> None:
    assert bound_ranks.call(_profiled_between_two) == [[["nccl:send", [[4]]]], [["nccl:recv", [[4]]]]]


def test_a_profiler_shows_collectives_under_nccl_s_names(bound_ranks: Ranks) -> None:
    shown = [["nccl:all_reduce", [[2]], True], ["nccl:all_gather", [[3]], True]]
    assert bound_ranks.call(_profiled) == [shown, shown]


def test_a_hash_of_tensors_is_that_of_nccl_s_log() -> None:
    values = torch.tensor([0, 1, 127, 128, 255, *b" hello"], dtype=torch.uint8, device="cuda")
    empty = torch.empty(0, device="cuda")
    # What `c10::get_hash` and `c10::hash_combine`, compiled from torch's header, make of these bytes.
    assert torch._C._distributed_c10d._hash_tensors([empty, values]) == 4705568906050517687


_OBJECTS = """
import sys
import torch
import torch.distributed as dist

dist.init_process_group("nccl", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
objects = [None]
dist.all_gather_object(objects, {"rank": 0})
print(objects)
dist.destroy_process_group()
"""


def test_objects_are_gathered_with_the_log_s_details(run_warm: Any, tmp_path: Path) -> None:
    ran = run_warm(_OBJECTS, str(tmp_path / "store"), TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert ran.stdout.splitlines()[-1:] == ["[{'rank': 0}]"], ran.stderr
