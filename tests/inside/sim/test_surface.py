"""The functions of `torch.sim` that libraries look up in a device's module."""

from __future__ import annotations

from typing import Any

import pytest

from repros.inside.sim.bridges import installed_release

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

# Names that torch itself (FSDP, checkpointing, torch.accelerator), Lightning and accelerate use in a device's module.
USED_BY_LIBRARIES = """
    Event Stream current_device current_stream default_stream device device_count device_of empty_cache
    get_amp_supported_dtype get_device_name get_device_properties get_rng_state get_rng_state_all init is_available
    is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated max_memory_reserved mem_get_info
    memory_allocated memory_reserved memory_stats reset_peak_memory_stats seed seed_all set_device set_rng_state
    set_rng_state_all set_stream stream synchronize
    """.split()  # noqa: SIM905 # one to a line would fill a page


@pytest.mark.parametrize("name", USED_BY_LIBRARIES)
def test_it_has_the_names_that_libraries_use(name: str) -> None:
    assert hasattr(torch.cuda, name) or name == "get_amp_supported_dtype"
    assert callable(getattr(torch.sim, name))


def test_every_public_name_is_one_of_cudas_or_of_the_interface_for_backends(sim: Any) -> None:
    of_backends = {"get_amp_supported_dtype", "get_autocast_dtype", "is_autocast_enabled", "set_autocast_dtype"}
    of_backends |= {"set_autocast_enabled", "Properties"}
    public = {name for name in sim.__all__ if not name.startswith("_")}
    assert public - of_backends - set(dir(torch.cuda)) == set()


def test_available_features_are_reported(sim: Any) -> None:
    assert (sim.is_available(), sim.is_initialized(), sim.is_bf16_supported()) == (True, True, True)
    assert sim.device_count() == 2
    assert sim.get_device_name(1) == "Simulated accelerator 1"
    assert sim.can_device_access_peer(0, 1)
    assert sim.get_amp_supported_dtype() == [torch.float16, torch.bfloat16, torch.float32]


@pytest.mark.parametrize("device", [1, "sim:1", torch.device("cpu")], ids=str)
def test_the_current_device_is_chosen_in_each_form(fresh_device: Any, device: Any) -> None:
    if getattr(device, "type", "sim") == "cpu":
        with pytest.raises(ValueError, match="Expected a sim device, but got: cpu"):
            fresh_device.set_device(device)
        return
    fresh_device.set_device(device)
    assert fresh_device.current_device() == 1
    with fresh_device.device(0):
        assert torch.empty(1, device="sim").device == torch.device("sim:0")
    with fresh_device.device_of(torch.empty(1, device="sim:0")):
        assert fresh_device.current_device() == 0
    assert fresh_device.current_device() == 1


def test_a_copy_that_does_not_block_is_made_when_it_returns() -> None:
    there = torch.arange(1000.0).pin_memory("sim").to("sim:1", non_blocking=True)
    back = torch.empty(1000).pin_memory("sim").copy_(there, non_blocking=True)
    other = there.to("sim:0", non_blocking=True)
    torch.sim.synchronize()
    assert torch.equal(back, torch.arange(1000.0))
    assert torch.equal(other.cpu(), back)


def test_streams_and_events_are_there_and_never_wait(fresh_device: Any) -> None:
    first, last = torch.sim.Event(enable_timing=True), torch.sim.Event(enable_timing=True)
    stream = torch.sim.Stream("sim:1")
    with torch.sim.stream(stream):
        assert torch.sim.current_stream("sim:1") is stream
        first.record()
        stream.wait_stream(torch.sim.default_stream())
        last.record()
    assert torch.sim.current_stream("sim:1") is not stream
    assert isinstance(stream, torch.Stream)
    assert (stream.device, stream) == (torch.device("sim:1"), torch.sim.Stream(1))
    assert len({stream, torch.sim.Stream(1), torch.sim.Stream(0)}) == 2
    torch.ones(2, device="sim:1").record_stream(stream)
    assert stream.query()
    assert first.elapsed_time(last) >= 0
    torch.sim.synchronize(1)
    with pytest.raises(RuntimeError, match="invalid device ordinal 2"):
        torch.sim.synchronize(2)


def test_properties_of_a_device(run_python: Any) -> None:
    properties = torch.sim.get_device_properties("sim:1")
    assert (properties.name, properties.total_memory) == ("Simulated accelerator 1", torch.sim.mem_get_info(1)[1])
    script = (
        "from repros.inside import sim; sim.load(); import torch; print(torch.sim.get_device_properties().total_memory)"
    )
    assert run_python(script, REPROS_SIM_MEMORY="1000000").stdout == "1000000\n"


def test_memory_has_its_limit_and_torchs_own_error(run_python: Any) -> None:
    script = """
from repros.inside import sim; sim.load()
import torch
kept = torch.empty(900_000, dtype=torch.uint8, device="sim")
try:
    torch.empty(200_000, dtype=torch.uint8, device="sim")
except torch.cuda.OutOfMemoryError as error:
    print(error)
print(torch.empty(200_000, dtype=torch.uint8, device="sim:1").device, torch.sim.memory_stats()["num_ooms"])
del kept
print(torch.empty(200_000, dtype=torch.uint8, device="sim").numel())
"""
    done = run_python(script, REPROS_SIM_MEMORY=str(1 << 20))
    message, other, freed = done.stdout.splitlines()
    assert message == (
        "sim out of memory. Tried to allocate 195.31 KiB. Device 0 has a total capacity of 1.00 MiB of which 145.09 KiB"
        " is free. Of the allocated memory 878.91 KiB is allocated by PyTorch."
    )
    assert (other, freed) == ("sim:1 1", "200000")


def test_a_kernels_results_need_room_too() -> None:
    tensor, out = torch.ones(4, device="sim"), torch.empty(0, device="sim")
    torch.sim.set_per_process_memory_fraction(0.0)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate 16 bytes"):
            tensor + tensor
        with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate 16 bytes"):
            torch.add(tensor, tensor, out=out)
        tensor.add_(1)  # needs none
    finally:
        torch.sim.set_per_process_memory_fraction(1.0)
    assert tensor.cpu().tolist() == [2.0] * 4
    assert torch.add(tensor, tensor, out=out).cpu().tolist() == [4.0] * 4


def test_a_pinned_tensor_reports_it() -> None:
    tensor = torch.arange(3.0)
    assert not tensor.is_pinned("sim")
    pinned = tensor.pin_memory("sim")
    assert pinned.is_pinned("sim")
    assert pinned[1:].is_pinned("sim")
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, tensor)
    assert torch.equal(pinned.to("sim", non_blocking=True).cpu(), tensor)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        tensor.to("sim").pin_memory("sim")


def test_a_pinned_address_is_forgotten_with_its_memory() -> None:
    freed = [torch.empty(1 << 20).pin_memory("sim").data_ptr() for _ in range(3)]
    again = [torch.empty(1 << 20) for _ in range(8)]
    assert not any(tensor.is_pinned("sim") for tensor in again), freed


accelerator = pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch.accelerator exists from torch 2.6")


@accelerator
def test_torch_accelerator_reports_it(fresh_device: Any) -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("sim")
    assert torch.accelerator.device_count() == torch.sim.device_count()
    torch.accelerator.set_device_index(1)
    assert torch.sim.current_device() == torch.accelerator.current_device_index() == 1
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().device == torch.device("sim:1")


@accelerator
@pytest.mark.skipif(not hasattr(getattr(torch, "accelerator", None), "memory_allocated"), reason="from torch 2.9")
def test_torch_accelerator_counts_the_same_bytes(fresh_device: Any) -> None:
    kept = torch.ones(1000, device="sim:1")
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        assert getattr(torch.accelerator, name)(1) == getattr(torch.sim, name)(1) >= 4000
    ours, theirs = torch.sim.memory_stats(1), torch.accelerator.memory_stats(1)
    assert {name: theirs[name] for name in ours} == ours
    torch.accelerator.reset_peak_memory_stats(1)
    assert torch.sim.max_memory_allocated(1) == torch.sim.memory_allocated(1)
    assert kept.sum() == 1000


def test_data_parallel_is_refused_rather_than_run_on_one_device() -> None:
    if not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip("torch 2.0's DataParallel sees CUDA devices only and calls the module as it is")
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2).to("sim"))
    # The first failure differs: without CUDA there is no `_scatter`, with CUDA there is no driver.
    with pytest.raises((AttributeError, RuntimeError), match=r"_scatter|NVIDIA|CUDA"):
        model(torch.ones(4, 2, device="sim"))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_for_it(workers: int) -> None:
    # Up to 2.6 a loader pins for CUDA unless the device is named; later (seen in 2.9) for the accelerator.
    if workers and not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip("torch 2.0's pinning thread sets CUDA's device first, whatever the device")
    device = {"pin_memory_device": "sim"} if installed_release("torch") < (2, 7) else {}
    data = torch.utils.data.TensorDataset(torch.arange(4.0))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers, **device):
        assert batch.is_pinned(*device.values())
        assert batch.to("sim", non_blocking=True).device.type == "sim"


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recomputed_forward_draws_the_same_numbers(reentrant: bool) -> None:
    if not getattr(torch.sim, "_initialized", False):
        pytest.skip("early checkpoints restore the random states of the CPU and of CUDA only")
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    x = torch.ones(64, device="sim", requires_grad=True)
    drawn = []

    def dropped(tensor: Any) -> Any:
        drawn.append(torch.rand(64, device="sim"))
        return (tensor * (drawn[-1] > 0.5)).exp()

    checkpoint(dropped, x, use_reentrant=reentrant).sum().backward()
    first, again = drawn
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), torch.rand(64, device="sim").cpu())
