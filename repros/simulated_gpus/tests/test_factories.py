"""Creating tensors, and `torch.cuda` as users of `torch.cuda` expect it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

FACTORIES = {
    "empty": lambda d: torch.empty(2, device=d),
    "zeros": lambda d: torch.zeros(2, device=d),
    "full": lambda d: torch.full((2,), 3.0, device=d),
    "arange": lambda d: torch.arange(4, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "tensor": lambda d: torch.tensor([1, 2], device=d),
    "as_tensor": lambda d: torch.as_tensor([1, 2], device=d),
    "randint": lambda d: torch.randint(3, (2,), device=d),
    "tril_indices": lambda d: torch.tril_indices(3, 3, device=d),
    "hann_window": lambda d: torch.hann_window(4, device=d),
    "ones_like": lambda d: torch.ones_like(torch.ones(2), device=d),
    "new_zeros": lambda d: torch.ones(1).new_zeros(2, device=d),
    "empty_strided": lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    "channels_last": lambda d: torch.empty(1, 2, 3, 3, device=d, memory_format=torch.channels_last),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())
def test_a_factory_makes_its_tensor_on_the_device_asked_for(make: Any, fresh_device: Any) -> None:
    assert make("cuda:1").device == torch.device("cuda:1")
    assert make("cuda").device == torch.device("cuda:0")
    assert make("cpu").device == torch.device("cpu")


def test_the_default_device_is_used_by_factories() -> None:
    with torch.device("cuda:1"):
        assert torch.zeros(2).device == torch.device("cuda:1")
        assert torch.nn.Linear(2, 2).weight.device == torch.device("cuda:1")
    assert torch.zeros(2).device == torch.device("cpu")


def test_the_current_device(fresh_device: Any) -> None:
    assert fresh_device.is_available()
    assert fresh_device.device_count() == 2
    fresh_device.set_device("cuda:1")
    assert fresh_device.current_device() == 1
    assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
    with fresh_device.device(0):
        assert torch.zeros(1, device="cuda").device == torch.device("cuda:0")
    assert fresh_device.current_device() == 1
    with fresh_device.device_of(torch.zeros(1, device="cuda:0")):
        assert fresh_device.current_device() == 0


@pytest.mark.parametrize(
    "act",
    [
        functools.partial(torch.zeros, 1, device="cuda:5"),
        functools.partial(torch.tril_indices, 3, 3, device="cuda:5"),  # the host's kernel makes the memory
        functools.partial(torch.cuda.set_device, 5),
    ],
)
def test_a_device_that_does_not_exist(act: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        act()


def test_streams_and_events_are_there_and_never_wait(sim: Any) -> None:
    stream = sim.Stream(device="cuda:1", priority=-1)
    with sim.stream(stream):
        assert sim.current_stream(1) == stream
    assert sim.current_stream(1) != stream
    start, end, other = (sim.Event(enable_timing=True) for _ in range(3))
    assert end.device is None
    start.record(sim.default_stream(1))
    end.record(stream)
    assert end.query()
    assert end.device == torch.device("cuda:1")
    assert start.elapsed_time(end) >= 0
    other.record()
    with pytest.raises(RuntimeError, match="CUDA error: invalid resource handle"):
        other.elapsed_time(end)
    with pytest.raises(RuntimeError, match="Event device 0 does not match recording stream's device 1"):
        other.record(stream)
    stream.wait_event(end)
    stream.wait_stream(sim.default_stream())
    sim.synchronize()


class _OnStream(torch.autograd.Function):  # type: ignore[name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.stream = torch.cuda.current_stream()
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        assert torch.cuda.current_stream() == ctx.stream
        return gradient


def test_backward_runs_on_the_stream_of_forward(sim: Any) -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    stream = sim.Stream()
    with sim.stream(stream):
        y = _OnStream.apply(x)
    assert sim.current_stream() != stream
    y.sum().backward()
    if hasattr(torch, "accelerator"):
        with sim.stream(stream):
            assert torch.accelerator.current_stream().stream_id == stream.stream_id


def test_errors_of_the_runtime_have_their_words(sim: Any) -> None:
    sim.check_error(0)
    with pytest.raises(sim.CudaError, match=r"out of memory \(2\)"):
        sim.check_error(2)
    sim.init()  # before, PyTorch does not query whether memory is pinned
    ordinary = torch.empty(100)
    assert sim.cudart().cudaHostRegister(ordinary.data_ptr(), 400, 0) == 0
    assert ordinary.is_pinned()
    assert sim.cudart().cudaHostRegister(ordinary.data_ptr(), 400, 0) == 712
    assert sim.cudart().cudaHostUnregister(ordinary.data_ptr()) == 0
    assert not ordinary.is_pinned()
    assert not isinstance(sim.cudart().cudaError.success, int)


def test_the_seventh_device_exists_when_requested(run_python: Any) -> None:
    script = "import torch; print(torch.zeros(1, device='cuda:6').device)"
    assert run_python(script, REPROS_SIM_DEVICES="7").stdout.strip() == "cuda:6"


def test_an_invalid_number_of_devices(run_python: Any) -> None:
    script = "import torch; torch.cuda.device_count()"
    ended = run_python(script, REPROS_SIM_DEVICES="many")
    assert ended.returncode != 0
    assert "REPROS_SIM_DEVICES must be a number from 1 to 64, not 'many'" in ended.stderr


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_compressed_sparse_layouts_are_refused_with_a_reason() -> None:
    with pytest.raises(NotImplementedError, match="not one of layout SparseCsr"):
        torch.ones(2, 2, device="cuda").to_sparse_csr()


def test_a_window_whose_kernel_is_the_devices_own() -> None:
    assert torch.equal(torch.kaiser_window(5, device="cuda").cpu(), torch.kaiser_window(5))


def test_a_kernel_that_the_cpu_lacks_in_float16() -> None:
    images, grid = (torch.ones(1, 1, 3, 3), torch.zeros(1, 2, 2, 2))
    found = torch.nn.functional.grid_sample(images.cuda().half(), grid.cuda().half(), align_corners=False)
    assert found.dtype == torch.float16
    assert torch.equal(found.cpu(), torch.nn.functional.grid_sample(images, grid, align_corners=False).half())
