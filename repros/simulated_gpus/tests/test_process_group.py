"""Process groups: layouts, groups of other backends, objects, timeouts, ranks that die.

NCCL's messages were read from PyTorch's CUDA library (the texts of ProcessGroupNCCL.cpp), not observed on a GPU.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
if TORCH < (2, 1):
    reason = "torch 2.0 has no process-group backends for devices other than the CPU and CUDA"
    pytest.skip(reason, allow_module_level=True)

from repros.simulated_gpus.tests.ranks import RankFailedError, Ranks, first_error, ones  # noqa: E402

dist = torch.distributed
BINDS_DEVICES = TORCH >= (2, 9)


def _layouts(rank: int) -> list[Any]:
    """Return the results for layouts that NCCL accepts: not row by row, and other shapes of the same size."""
    square = torch.arange(4.0, device="cuda").reshape(2, 2) + rank
    parts = [torch.zeros(2, 2, device="cuda").t() for _ in range(2)]
    dist.all_gather(parts, square)
    images = torch.arange(16.0, device="cuda").reshape(1, 4, 2, 2).contiguous(memory_format=torch.channels_last)
    dist.all_reduce(images)
    flat = torch.zeros(4, device="cuda")
    dist.reduce_scatter_tensor(flat.view(2, 2), torch.arange(8.0, device="cuda"))
    untouched = torch.full((2,), float(rank + 1), device="cuda")
    dist.reduce(untouched, dst=1)
    return [[part.tolist() for part in parts], images.flatten().tolist(), flat.tolist(), untouched.tolist()]


def test_layouts_that_nccl_accepts_are_accepted(bound_ranks: Ranks) -> None:
    gathered = [[[0.0, 1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0, 4.0]]]
    doubled = [2.0 * value for value in range(16)]
    assert bound_ranks.call(_layouts) == [
        [gathered, doubled, [0.0, 2.0, 4.0, 6.0], [1.0, 1.0]],  # not the root: NCCL leaves its tensor as it was
        [gathered, doubled, [8.0, 10.0, 12.0, 14.0], [3.0, 3.0]],
    ]


def _uneven(rank: int) -> list[Any]:
    """Gather parts of several sizes, which Gloo refuses and NCCL's group accepts (FSDP1 does so in torch 2.1)."""
    parts = [torch.zeros(size, device="cuda") for size in (3, 0)]
    dist.all_gather(parts, torch.arange(3.0, device="cuda") if rank == 0 else torch.zeros(0, device="cuda"))
    own = torch.zeros(2 + rank, device="cuda")
    dist.reduce_scatter(own, [ones(2), ones(3)])
    return [[part.tolist() for part in parts], own.tolist()]


def test_parts_may_differ_in_size(bound_ranks: Ranks) -> None:
    gathered = [[0.0, 1.0, 2.0], []]
    assert bound_ranks.call(_uneven) == [[gathered, [2.0, 2.0]], [gathered, [2.0, 2.0, 2.0]]]


def _to_itself(rank: int) -> list[Any]:
    """Send to itself, and in the same batch to the other rank; tensors arrive in the order of sending."""
    kept = [torch.zeros(2, 2, device="cuda") for _ in range(2)]
    given = torch.zeros(2, device="cuda")
    mine = torch.arange(4.0, device="cuda").reshape(2, 2) + rank
    batch = [dist.P2POp(dist.irecv, kept[0], rank)]
    batch += [dist.P2POp(dist.isend, tensor, rank) for tensor in (mine, mine + 10)]
    batch += [dist.P2POp(dist.irecv, kept[1], rank), dist.P2POp(dist.irecv, given, 1 - rank)]
    batch.append(dist.P2POp(dist.isend, torch.full((2,), float(rank), device="cuda"), 1 - rank))
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [[tensor.flatten().tolist() for tensor in kept], given.tolist()]


def test_a_rank_may_send_to_itself_in_a_batch(bound_ranks: Ranks) -> None:
    # torch/testing/_internal/distributed/distributed_test.py `test_batch_isend_irecv_self_nccl` checks it of NCCL
    assert bound_ranks.call(_to_itself) == [
        [[[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]], [1.0, 1.0]],
        [[[1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0]], [0.0, 0.0]],
    ]


def _receive_without_send(rank: int) -> str:
    batch = [dist.P2POp(dist.irecv, ones(), rank)]
    return first_error(lambda: [work.wait() for work in dist.batch_isend_irecv(batch)])


def test_receiving_from_itself_without_sending_raises(bound_ranks: Ranks) -> None:
    words = "RuntimeError: a rank that receives from itself has to send to itself in the same batch"
    assert bound_ranks.call(_receive_without_send) == [words] * 2


def _objects(rank: int) -> dict[str, Any]:
    found: dict[str, Any] = {"all_gather": [None, None], "gather": [None, None] if rank == 1 else None}
    dist.all_gather_object(found["all_gather"], {"rank": rank})
    dist.gather_object(f"from {rank}", found["gather"], dst=1)
    found["broadcast"] = [rank, "mine"] if rank == 0 else [None, None]
    dist.broadcast_object_list(found["broadcast"], src=0)
    found["scatter"] = [None]
    dist.scatter_object_list(found["scatter"], ["zero", "one"], src=0)
    if hasattr(dist, "send_object_list"):  # from 2.4
        found["send"] = ["sent", 7] if rank == 0 else [None, None]
        dist.send_object_list(found["send"], dst=1) if rank == 0 else dist.recv_object_list(found["send"], src=0)
    return found


def test_objects_are_exchanged(bound_ranks: Ranks) -> None:
    same: dict[str, Any] = {"all_gather": [{"rank": 0}, {"rank": 1}], "broadcast": [0, "mine"]}
    if hasattr(dist, "send_object_list"):
        same["send"] = ["sent", 7]
    assert bound_ranks.call(_objects) == [
        {**same, "gather": None, "scatter": ["zero"]},
        {**same, "gather": ["from 0", "from 1"], "scatter": ["one"]},
    ]


def _futures(rank: int) -> list[Any]:
    tensor = torch.full((2,), float(rank), device="cuda")
    work = dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True)
    tripled = work.get_future().then(lambda done: done.value()[0] * 3)
    first = tripled.wait()
    bfloat = dist.all_reduce(ones(dtype=torch.bfloat16), async_op=True)
    while not bfloat.is_completed():
        pass
    return [first.tolist(), str(first.device), work.result()[0].tolist(), bfloat.result()[0].tolist()]


def test_a_future_contains_the_finished_tensors_on_the_device(bound_ranks: Ranks) -> None:
    assert bound_ranks.call(_futures) == [[[1.5, 1.5], f"cuda:{rank}", [0.5, 0.5], [2.0, 2.0]] for rank in (0, 1)]


def _premultiplied(rank: int) -> list[float]:
    factor = torch.tensor([0.5], device="cuda")
    tensor = torch.full((2,), float(rank + 1), device="cuda")
    dist.all_reduce(tensor, op=torch._C._distributed_c10d._make_nccl_premul_sum(factor))
    return [*tensor.tolist(), *factor.tolist()]


def test_the_factor_of_a_premultiplied_sum_may_be_a_tensor(bound_ranks: Ranks) -> None:
    assert bound_ranks.call(_premultiplied) == [[1.5, 1.5, 0.5]] * 2


def _mesh_of_gloo(rank: int) -> list[Any]:
    """Return the description of a group of Gloo, and a sum over a mesh of it, which finds it by its name."""
    from torch.distributed import _functional_collectives as functional

    gloo = dist.new_group(backend="gloo", group_desc="for metrics")
    mesh = dist.device_mesh.DeviceMesh.from_group(gloo, "cuda")
    total = functional.all_reduce(torch.full((2,), rank + 1.0, device="cuda"), "sum", mesh)
    return [gloo.group_desc, total.tolist()]


@pytest.mark.skipif(TORCH < (2, 4), reason="groups have a description and make a mesh from 2.4 on")
def test_a_group_of_gloo_keeps_its_name(bound_ranks: Ranks) -> None:
    assert bound_ranks.call(_mesh_of_gloo) == [["for metrics", [3.0, 3.0]]] * 2


def _with_gloo_group(rank: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gloo = dist.new_group(backend="gloo")
    on_cpu, on_sim = ones(device="cpu"), ones()
    dist.all_reduce(on_cpu, group=gloo)
    dist.all_reduce(on_sim, group=gloo)
    dist.monitored_barrier(group=gloo)
    dist.barrier(group=gloo)
    objects = [None, None]
    dist.all_gather_object(objects, rank, group=gloo)
    refused = first_error(dist.monitored_barrier)
    mixed = dist.new_group(backend="cpu:gloo,cuda:nccl")
    both = [ones(device=device) for device in ("cpu", "cuda")]
    for tensor in both:
        dist.all_reduce(tensor, group=mixed)
    return {
        "names": [dist.get_backend(gloo), dist.get_backend()],
        "sums": [tensor.tolist() for tensor in (on_cpu, on_sim, *both)],
        "devices": [tensor.device.type for tensor in (on_cpu, on_sim, *both)],
        "objects": objects,
        "monitored": refused.partition(": ")[2],
    }


def test_a_gloo_group_beside_it_takes_tensors_of_both_devices(bound_ranks: Ranks) -> None:
    """As with NCCL: Gloo is registered for the CPU and the accelerator, also in ranks bound to a device."""
    for found in bound_ranks.call(_with_gloo_group):
        assert re.match(r"monitored_barrier .*GLOO", found.pop("monitored"))
        assert found == {
            "names": ["gloo", "nccl"],
            "sums": [[2.0, 2.0]] * 4,
            "devices": ["cpu", "cuda", "cpu", "cuda"],
            "objects": [0, 1],
        }


def _subgroups(rank: int) -> list[Any]:
    alone, _ = dist.new_subgroups(group_size=1)
    tensor = ones()
    dist.all_reduce(tensor, group=alone)
    second = dist.new_group([1])
    outside = first_error(lambda: dist.all_reduce(ones(), group=second))
    local = dist.new_group([rank], use_local_synchronization=True)
    return [tensor.tolist(), dist.get_world_size(alone), dist.get_rank(second), outside, local.size()]


def test_subgroups(bound_ranks: Ranks) -> None:
    first, second = bound_ranks.call(_subgroups)
    assert first == [[1.0, 1.0], 1, -1, "nothing", 1]  # a rank outside a group gets a warning, and nothing is done
    assert second == [[1.0, 1.0], 1, 0, "nothing", 1]


def _default_backend(rank: int) -> list[Any]:
    if not hasattr(dist, "get_default_backend_for_device"):
        return [dist.Backend.default_device_backend_map["cuda"]]
    return [dist.get_default_backend_for_device(device) for device in ("cuda", torch.device("cuda", rank))]


def test_it_is_the_default_for_its_device(bound_ranks: Ranks) -> None:
    assert {name for answer in bound_ranks.call(_default_backend) for name in answer} == {"nccl"}


def _named_by_the_device(rank: int, folder: str) -> str:
    dist.barrier()  # no rank closes its connections while another still makes them
    dist.destroy_process_group()
    options = {"init_method": f"file://{folder}/again", "rank": rank, "world_size": 2}
    dist.init_process_group(device_id=torch.device("cuda", rank), **options)
    tensor = ones()
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0, 2.0]
    return str(dist.get_backend())


@pytest.mark.skipif(
    not BINDS_DEVICES,
    reason="torch 2.6 and before (between 2.6 and 2.9 not seen) bind ranks to CUDA devices only",
)
def test_without_a_backends_name_the_device_determines_it(sim: Any, tmp_path: Path) -> None:
    ranks = Ranks(2, tmp_path)
    try:
        assert ranks.call(_named_by_the_device, str(tmp_path)) == ["nccl", "nccl"]
    finally:
        ranks.close()


def _make_impatient_group(rank: int) -> None:
    globals()["impatient"] = dist.new_group(timeout=dt.timedelta(seconds=1))
    dist.all_reduce(ones(), group=globals()["impatient"])
    dist.all_reduce(ones())


def _reduce_alone(rank: int, group: str | None) -> None:
    dist.all_reduce(ones(), group=globals()[group] if group else None)


def test_waiting_for_an_absent_rank_and_for_a_dead_one_raises(sim: Any, tmp_path: Path) -> None:
    ranks = Ranks(2, tmp_path)
    try:
        ranks.call(_make_impatient_group)
        with pytest.raises(RankFailedError, match=r"Timed out waiting|Application timeout") as late:
            ranks.call(_reduce_alone, "impatient", only=[0])
        assert late.value.kind in {"RuntimeError", "DistBackendError"}
        ranks.kill(1)
        with pytest.raises(RankFailedError, match=r"[Cc]onnection") as dead:
            ranks.call(_reduce_alone, None, only=[0])
        assert dead.value.kind in {"RuntimeError", "DistBackendError"}
    finally:
        ranks.close()


def _split(rank: int) -> list[float]:
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cuda", (1, 2), mesh_dim_names=("rows", "columns"))
    sums = []
    for group in (mesh["rows"].get_group(), mesh["columns"].get_group(), dist.split_group(split_ranks=[[0], [1]])):
        ones = torch.full((3,), float(rank + 1), device="cuda")
        dist.all_reduce(ones, group=group)
        sums.append(ones[0].item())
    return sums


@pytest.mark.skipif(TORCH < (2, 9), reason="Gloo's groups can be split from 2.9 on")
def test_a_group_that_is_bound_to_a_device_can_be_split(bound_ranks: Any) -> None:
    assert bound_ranks.call(_split) == [[1.0, 3.0, 1.0], [2.0, 3.0, 2.0]]
