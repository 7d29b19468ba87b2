"""Compilers and profilers for GPUs: they run without a GPU, or raise an error with the remedy."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402 # torch is imported first, or all is skipped

pytestmark = pytest.mark.usefixtures("sim")


needs_dynamo = pytest.mark.skipif(TORCH < (2, 1), reason="torch 2.0 compiles nothing on Python 3.11")


@needs_dynamo
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_torch_compile_runs_operator_by_operator_and_says_so(mode: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
    given = torch.ones(2, 4, device="cuda")
    compiled = torch.compile(model, mode=mode)
    with pytest.warns(UserWarning, match="do not run on simulated GPUs; what was captured runs operator by operator"):
        found = compiled(given)
    assert torch.equal(found, model(given))
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@needs_dynamo
def test_dynamo_can_be_reset() -> None:
    torch._dynamo.reset()


@needs_dynamo
def test_torch_compile_for_another_backend_is_as_it_was() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="torch.compile")
        compiled = torch.compile(lambda x: (x * 2).relu(), backend="aot_eager")
        assert compiled(torch.ones(3, device="cuda")).tolist() == [2, 2, 2]


def test_a_library_is_not_compiled_ahead() -> None:
    compile_fx = pytest.importorskip("torch._inductor.compile_fx", reason="inductor is not there")
    if not hasattr(compile_fx, "compile_fx_aot"):
        pytest.skip("torch 2.0 compiles no library ahead")
    graph = torch.fx.symbolic_trace(torch.nn.Linear(2, 2).cuda())
    with pytest.raises(RuntimeError, match="inductor compiles no library for simulated GPUs; compile for the CPU"):
        compile_fx.compile_fx_aot(graph, [torch.ones(2, 2, device="cuda")])


TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def fill(pointer, count: tl.constexpr):
    tl.store(pointer + tl.arange(0, count), 1.0)
fill[(1,)](torch.zeros(4, device="cuda"), 4)
"""


@pytest.mark.skipif(TORCH < (2, 4), reason="Triton 2 fails in its own words: it cannot find CUDA's driver")
def test_a_triton_kernel_is_refused(run_warm: Any, tmp_path: Any) -> None:
    pytest.importorskip("triton", reason="Triton is not installed in this environment")
    script = tmp_path / "script.py"  # Triton reads a kernel's source from its file
    script.write_text(TRITON)
    ended = run_warm(f"import runpy; runpy.run_path({str(script)!r})")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "RuntimeError: Triton kernels do not run on simulated GPUs; take the path of the program that uses operators of"
        " torch"
    )


EXTENSION = "CUDA extensions do not run on simulated GPUs; take the path of the program"


def test_an_extension_with_cuda_sources_is_refused() -> None:
    extensions = pytest.importorskip("torch.utils.cpp_extension", reason="setuptools is not there")
    with pytest.raises(RuntimeError, match=EXTENSION):
        extensions.load("one", ["one.cpp", "one.cu"])
    with pytest.raises(RuntimeError, match=EXTENSION):
        extensions.load_inline("one", "", "__global__ void one() {}")
    if extensions.CUDA_HOME is None:
        with pytest.raises(OSError, match=EXTENSION):
            extensions.CUDAExtension("one", ["one.cu"])


@pytest.mark.parametrize("name", ["utilization", "memory_usage", "temperature", "power_draw", "clock_rate"])
def test_what_nvml_measures_is_refused(name: str) -> None:
    if not hasattr(torch.cuda, name):
        pytest.skip(f"torch {torch.__version__} has no torch.cuda.{name}")
    with pytest.raises(RuntimeError, match=rf"torch\.cuda\.{name} asks NVML, and simulated GPUs have none; leave out"):
        getattr(torch.cuda, name)()


def test_the_memory_in_use_needs_no_nvml() -> None:
    if not hasattr(torch.cuda, "device_memory_used"):
        pytest.skip("torch.cuda.device_memory_used is there from 2.7 on")
    torch.cuda.empty_cache()
    before = torch.cuda.device_memory_used(1)
    held = torch.empty(30 << 20, dtype=torch.uint8, device="cuda:1")
    assert torch.cuda.device_memory_used(1) - before == held.numel()


def test_cuda_ipc_is_refused() -> None:
    storage = torch.ones(3, device="cuda").untyped_storage()
    for share in (
        storage._share_cuda_,
        lambda: torch.UntypedStorage._new_shared_cuda(0, b"", 0, 0, b"", 0, b"", False),
        lambda: torch.cuda.Event(interprocess=True),
    ):
        with pytest.raises(RuntimeError, match="CUDA IPC is not simulated; send tensors through"):
            share()


PROFILE = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(4, device="cuda", requires_grad=True)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, profile_memory=True) as run:
    (x * 2).sum().backward()
names = {event.key for event in run.key_averages()}
run.key_averages().table(sort_by="cuda_time_total")
with torch.autograd.profiler.profile(**({"use_cuda": True} if OLD else {"use_device": "cuda"})) as run:
    (x * 2).sum()
with torch.autograd.profiler.emit_nvtx():
    (x * 2).sum()
print(sorted(names & {"aten::mul", "aten::sum"}), len(run.function_events) > 0)
"""


def test_a_profile_shows_the_operators_and_no_flood_of_errors(run_warm: Any) -> None:
    ended = run_warm(f"OLD = {TORCH < (2, 4)}\n{PROFILE}")
    assert ended.stdout.splitlines() == ["['aten::mul', 'aten::sum'] True"], ended.stderr
    assert "Failed to record CUDA event" not in ended.stderr
    assert len(ended.stderr.splitlines()) < 10, ended.stderr


PROFILE_OF_CUDA = """
import os, tempfile, torch
from torch.profiler import ProfilerActivity, profile, supported_activities
x = torch.ones(4, device="cuda")
print({ProfilerActivity.CPU, ProfilerActivity.CUDA} <= supported_activities())
with profile(activities=[ProfilerActivity.CUDA]) as run:
    x + x
print([event.name for event in run.events()])
with tempfile.TemporaryDirectory() as folder:  # the file itself is replaced: never a device's
    run.export_chrome_trace(os.path.join(folder, "trace"))
with profile() as run:
    x + x
print(run.use_device if hasattr(run, "use_device") else "cuda", "aten::add" in {event.name for event in run.events()})
torch.autograd.profiler.profile(enabled=False)
"""


def test_a_profile_of_cuda_alone_is_empty_and_one_of_everything_has_it(run_warm: Any) -> None:
    ended = run_warm(PROFILE_OF_CUDA)
    assert ended.stdout.splitlines() == ["True", "[]", "cuda True"], ended.stderr


def test_torchscript_runs_as_often_as_it_is_called() -> None:
    for device in ("cuda", "cpu"):
        x = torch.ones(4, 4, device=device, requires_grad=True)
        traced = torch.jit.trace(lambda x: (x * x + x).relu().tanh() * 2, x)
        for _ in range(4):
            traced(x).sum().backward()
        assert x.grad.device.type == device
