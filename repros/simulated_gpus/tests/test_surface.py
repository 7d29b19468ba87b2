"""The functions of `torch.cuda` that libraries look up in a device's module."""

from __future__ import annotations

from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


def test_available_features_are_reported(sim: Any) -> None:
    assert (sim.is_available(), sim.is_bf16_supported(), sim.device_count()) == (True, True, 2)
    assert sim.get_device_name(1) == "Simulated CUDA device"
    assert sim.can_device_access_peer(0, 1)


@pytest.mark.parametrize("device", [1, "cuda:1", torch.device("cpu")], ids=str)
def test_the_current_device_is_chosen_in_each_form(fresh_device: Any, device: Any) -> None:
    if getattr(device, "type", "cuda") == "cpu":
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            fresh_device.set_device(device)
        return
    fresh_device.set_device(device)
    assert fresh_device.current_device() == 1
    with fresh_device.device(0):
        assert torch.empty(1, device="cuda").device == torch.device("cuda:0")
    with fresh_device.device_of(torch.empty(1, device="cuda:0")):
        assert fresh_device.current_device() == 0
    assert fresh_device.current_device() == 1


def test_a_copy_that_does_not_block_is_made_when_it_returns() -> None:
    there = torch.arange(1000.0).pin_memory("cuda").to("cuda:1", non_blocking=True)
    back = torch.empty(1000).pin_memory("cuda").copy_(there, non_blocking=True)
    other = there.to("cuda:0", non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(back, torch.arange(1000.0))
    assert torch.equal(other.cpu(), back)


def test_streams_and_events_are_there_and_never_wait(fresh_device: Any) -> None:
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream("cuda:1") == stream
        first.record()
        stream.wait_stream(torch.cuda.default_stream())
        last.record()
    assert torch.cuda.current_stream("cuda:1") != stream
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device("cuda:1")
    assert len({stream, torch.cuda.Stream(1), torch.cuda.Stream(0)}) == 3
    torch.ones(2, device="cuda:1").record_stream(stream)
    assert stream.query()
    assert first.elapsed_time(last) >= 0
    torch.cuda.synchronize(1)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.synchronize(2)


def test_properties_of_a_device() -> None:
    properties = torch.cuda.get_device_properties("cuda:1")
    assert (properties.name, properties.total_memory) == ("Simulated CUDA device", torch.cuda.mem_get_info(1)[1])


def test_memory_has_its_limit_and_torchs_own_error(run_python: Any) -> None:
    script = """
import torch
print(torch.cuda.get_device_properties(0).total_memory)
kept = torch.empty(15_000_000, dtype=torch.uint8, device="cuda")
try:
    torch.empty(9_000_000, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(error)
print(torch.empty(9_000_000, dtype=torch.uint8, device="cuda:1").device, torch.cuda.memory_stats()["num_ooms"])
del kept
print(torch.empty(9_000_000, dtype=torch.uint8, device="cuda").numel())
torch.empty(16 << 20, dtype=torch.uint8, device="cuda:2")  # is free at once
torch.empty(20 << 20, dtype=torch.uint8, device="cuda:2")  # does not fit into it
print(torch.cuda.memory_stats(2)["num_alloc_retries"], torch.cuda.memory_reserved(2) >> 20)
"""
    done = run_python(script, REPROS_SIM_MEMORY=str(24 << 20), REPROS_SIM_DEVICES="3")
    size, message, other, freed, cached = done.stdout.splitlines()
    assert size == str(24 << 20)
    assert message.startswith("CUDA out of memory. Tried to allocate 20.00 MiB")  # test_cuda_place.py has all words
    assert "24.00 MiB" in message
    assert "8.00 MiB" in message  # is free
    assert (other, freed) == ("cuda:1 1", "9000000")
    assert cached == "1 20"  # is released where memory runs out


def test_a_kernels_results_need_room_too() -> None:
    torch.cuda.empty_cache()
    tensor, out = torch.ones(1 << 22, device="cuda"), torch.empty(0, device="cuda")
    torch.cuda.set_per_process_memory_fraction(0.0)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 16\.00 MiB"):
            tensor + tensor
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 16\.00 MiB"):
            torch.add(tensor, tensor, out=out)
        tensor.add_(1)  # needs none
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert tensor.cpu().unique().tolist() == [2.0]
    assert torch.add(tensor, tensor, out=out).cpu().unique().tolist() == [4.0]


def test_cached_memory_is_used_again_before_more_is_taken(fresh_device: Any) -> None:
    fresh_device.empty_cache()
    before = fresh_device.memory_reserved()
    one = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
    del one
    assert fresh_device.memory_reserved() - before == 30 << 20
    parts = [torch.empty(12 << 20, dtype=torch.uint8, device="cuda") for _ in "12"]
    assert fresh_device.memory_reserved() - before == 30 << 20
    assert fresh_device.memory_stats()["inactive_split_bytes.large_pool.current"] >= 6 << 20
    del parts[0]
    fresh_device.empty_cache()  # the other part keeps the segment
    assert fresh_device.memory_reserved() - before == 30 << 20
    parts.clear()
    fresh_device.empty_cache()
    assert fresh_device.memory_reserved() == before


def test_memory_that_is_cached_in_parts_is_of_no_use(run_python: Any) -> None:
    script = """
import torch
parts = [torch.empty(12 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
del parts[::2]  # 24 MiB are free
try:
    torch.empty(36 << 20, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(error)
first = torch.empty(40 << 20, dtype=torch.uint8, device="cuda:1")
del first
part, rest = torch.empty(12 << 20, dtype=torch.uint8, device="cuda:1"), torch.empty(2 << 20, device="cuda:1")
del part
try:
    torch.empty(36 << 20, dtype=torch.uint8, device="cuda:1")
except torch.cuda.OutOfMemoryError as error:
    print(error)
"""
    separate, fragmented = run_python(script, REPROS_SIM_MEMORY=str(56 << 20)).stdout.splitlines()
    assert "24.00 MiB" in separate  # still in use; whole segments were released
    words = "32.00 MiB is reserved by PyTorch but unallocated" if TORCH >= (2, 1) else "40.00 MiB reserved in total"
    assert words in fragmented


def test_a_pinned_tensor_reports_it() -> None:
    tensor = torch.arange(3.0)
    assert not tensor.is_pinned("cuda")
    pinned = tensor.pin_memory("cuda")
    assert pinned.is_pinned("cuda")
    assert pinned[1:].is_pinned("cuda")
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, tensor)
    assert torch.equal(pinned.to("cuda", non_blocking=True).cpu(), tensor)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        tensor.to("cuda").pin_memory("cuda")


def test_a_pinned_address_is_forgotten_with_its_memory() -> None:
    freed = [torch.empty(1 << 20).pin_memory("cuda").data_ptr() for _ in range(3)]
    again = [torch.empty(1 << 20) for _ in range(8)]
    assert not any(tensor.is_pinned("cuda") for tensor in again), freed


accelerator = pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch.accelerator exists from torch 2.6")


@accelerator
def test_torch_accelerator_reports_it(fresh_device: Any) -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    torch.accelerator.set_device_index(1)
    assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 1
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().device == torch.device("cuda:1")


@accelerator
@pytest.mark.skipif(not hasattr(getattr(torch, "accelerator", None), "memory_allocated"), reason="from torch 2.9")
def test_torch_accelerator_counts_the_same_bytes(fresh_device: Any) -> None:
    kept = torch.ones(1000, device="cuda:1")
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        assert getattr(torch.accelerator, name)(1) == getattr(torch.cuda, name)(1) >= 4000
    ours, theirs = torch.cuda.memory_stats(1), torch.accelerator.memory_stats(1)
    assert {name: theirs[name] for name in ours} == ours
    torch.accelerator.reset_peak_memory_stats(1)
    assert torch.cuda.max_memory_allocated(1) == torch.cuda.memory_allocated(1)
    assert kept.sum() == 1000


def test_data_parallel_computes_on_every_device() -> None:
    seen = []

    class Model(torch.nn.Linear):  # type: ignore[name-defined] # mypy does not see torch
        def forward(self, rows: Any) -> Any:
            seen.append(str(rows.device))
            return super().forward(rows)

    torch.manual_seed(0)
    model, rows = Model(2, 2), torch.arange(8.0).reshape(4, 2)
    model(rows).pow(2).sum().backward()
    expected, seen[:] = model.weight.grad.clone(), []
    model.zero_grad()
    torch.nn.DataParallel(model.cuda())(rows.cuda()).pow(2).sum().backward()
    assert sorted(seen) == ["cuda:0", "cuda:1"]
    torch.testing.assert_close(model.weight.grad.cpu(), expected)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_for_it(workers: int) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(4.0))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers):
        assert batch.is_pinned()
        assert batch.to("cuda", non_blocking=True).device.type == "cuda"


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recomputed_forward_draws_the_same_numbers(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    x = torch.ones(64, device="cuda", requires_grad=True)
    drawn = []

    def dropped(tensor: Any) -> Any:
        drawn.append(torch.rand(64, device="cuda"))
        return (tensor * (drawn[-1] > 0.5)).exp()

    checkpoint(dropped, x, use_reentrant=reentrant).sum().backward()
    first, again = drawn
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), torch.rand(64, device="cuda").cpu())


def test_libraries_of_cuda_s_can_be_chosen_and_limited() -> None:
    default = torch.backends.cuda.preferred_linalg_library("cusolver")
    assert "Cusolver" in str(default)
    torch.backends.cuda.preferred_linalg_library("default")
    plans = torch.backends.cuda.cufft_plan_cache
    assert (plans.max_size, plans.size) == (4096, 0)
    plans[1].max_size = 10
    assert (plans[0].max_size, plans[1].max_size) == (4096, 10)
    plans[1].max_size = 4096
    plans.clear()
