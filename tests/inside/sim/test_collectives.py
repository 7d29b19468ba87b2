"""The process group of the device: two real processes over Gloo, results on the device, CPU tensors refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
dist = torch.distributed
pytestmark = [
    pytest.mark.usefixtures("sim"),
    pytest.mark.skipif(
        not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"),
        reason="torch 2.0 has no process-group backends for devices other than the CPU and CUDA",
    ),
]
RANKS = 2


def launch(work: Any, tmp_path: Path) -> Any:
    """Runs `work(rank, out)` in two ranks; gives what each put into the dictionary `out`."""
    torch.multiprocessing.spawn(_rank, (work, str(tmp_path)), nprocs=RANKS)
    return [torch.load(tmp_path / f"{rank}.pt") for rank in range(RANKS)]


def _rank(rank: Any, work: Any, folder: Any) -> None:
    from repros.inside import sim

    sim.load()
    torch.sim.set_device(rank)
    torch.set_num_threads(1)
    group = f"file://{folder}/rendezvous"
    dist.init_process_group("simccl", init_method=group, rank=rank, world_size=RANKS, timeout=dt.timedelta(seconds=60))
    out: dict[str, Any] = {}
    work(rank, out)
    dist.destroy_process_group()
    torch.save(out, f"{folder}/{rank}.pt")


def _everything(rank: Any, out: Any) -> None:  # noqa: PLR0915 # one launch for all of them
    def mine(*values: Any) -> Any:
        return torch.tensor(values, device="sim") * (rank + 1)

    for name in ("SUM", "AVG", "MAX", "MIN", "PRODUCT"):
        tensor = mine(1.0, 2.0)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        out[name] = tensor.cpu()
    tensor = mine(1, 3)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    out["integer AVG"] = tensor.cpu()

    tensor = mine(5.0)
    work = dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True)
    future = work.get_future()
    out["future"] = future.wait()[0].cpu()
    work.wait()
    out["async"] = tensor.cpu()

    tensor = mine(1.0)
    dist.broadcast(tensor, src=1)
    out["broadcast"] = tensor.cpu()
    tensor = mine(4.0)
    dist.reduce(tensor, dst=0, op=dist.ReduceOp.AVG)
    out["reduce"] = tensor.cpu() if rank == 0 else None

    parts = [torch.zeros(2, device="sim") for _ in range(RANKS)]
    dist.all_gather(parts, mine(1.0, 2.0))
    out["all_gather"] = [part.cpu() for part in parts]
    whole = torch.zeros(RANKS, 2, device="sim")
    dist.all_gather_into_tensor(whole, mine(1.0, 2.0))
    out["all_gather_into_tensor"] = whole.cpu()

    dist.gather(mine(1.0), [torch.zeros(1, device="sim") for _ in range(RANKS)] if rank == 0 else None)
    tensor = torch.zeros(1, device="sim")
    dist.scatter(tensor, [mine(10.0), mine(20.0)] if rank == 0 else None)
    out["scatter"] = tensor.cpu()

    tensor = torch.zeros(2, device="sim")
    dist.reduce_scatter(tensor, [mine(1.0, 2.0), mine(3.0, 4.0)])
    out["reduce_scatter"] = tensor.cpu()
    dist.reduce_scatter_tensor(tensor, mine(1.0, 2.0, 3.0, 4.0), op=dist.ReduceOp.AVG)
    out["reduce_scatter_tensor"] = tensor.cpu()

    tensor = torch.zeros(2, device="sim")
    dist.all_to_all_single(tensor, mine(1.0, 2.0))
    out["all_to_all_single"] = tensor.cpu()
    parts = [torch.zeros(1, device="sim") for _ in range(RANKS)]
    dist.all_to_all(parts, [mine(1.0), mine(2.0)])
    out["all_to_all"] = [part.cpu() for part in parts]

    tensor = mine(7.0)
    if rank == 0:
        dist.send(tensor, 1)
    else:
        dist.recv(tensor, 0)
    out["send"] = tensor.cpu()
    objects = [None] * RANKS
    dist.all_gather_object(objects, {"rank": rank})
    out["objects"] = objects
    dist.barrier()

    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        out["cpu"] = str(error).splitlines()[0]
    out["devices"] = str(tensor.device)


def test_every_collective(tmp_path: Path) -> None:
    first, second = launch(_everything, tmp_path)

    def both(name: Any, *values: Any) -> None:
        for out in (first, second):
            assert torch.equal(out[name].float(), torch.tensor(values)), (name, out[name])

    both("SUM", 3.0, 6.0)
    both("AVG", 1.5, 3.0)
    both("MAX", 2.0, 4.0)
    both("MIN", 1.0, 2.0)
    both("PRODUCT", 2.0, 8.0)
    both("integer AVG", 1.0, 4.0)  # 3 / 2 and 9 / 2, truncated
    both("future", 7.5)
    both("async", 7.5)
    both("broadcast", 2.0)
    assert first["reduce"].tolist() == [6.0]
    for out in (first, second):
        assert [part.tolist() for part in out["all_gather"]] == [[1.0, 2.0], [2.0, 4.0]]
        assert out["all_gather_into_tensor"].tolist() == [[1.0, 2.0], [2.0, 4.0]]
        assert out["objects"] == [{"rank": 0}, {"rank": 1}]
        assert out["cpu"] == "No backend type associated with device type cpu"
    assert [out["scatter"].tolist() for out in (first, second)] == [[10.0], [20.0]]
    assert [out["reduce_scatter"].tolist() for out in (first, second)] == [[3.0, 6.0], [9.0, 12.0]]
    assert [out["reduce_scatter_tensor"].tolist() for out in (first, second)] == [[1.5, 3.0], [4.5, 6.0]]
    assert [out["all_to_all_single"].tolist() for out in (first, second)] == [[1.0, 2.0], [2.0, 4.0]]
    assert [[p.item() for p in out["all_to_all"]] for out in (first, second)] == [[1.0, 2.0], [2.0, 4.0]]
    both("send", 7.0)
    assert [out["devices"] for out in (first, second)] == ["sim:0", "sim:1"]
