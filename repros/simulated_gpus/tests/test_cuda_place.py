"""The simulated accelerator in CUDA's place: programs that name no device type but `cuda`."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="these tests run in an environment with torch")

Run = Callable[..., subprocess.CompletedProcess[str]]


def simulated(root: Path, run_script: Run) -> Run:
    """Return a function that runs a script whose `cuda` devices are simulated."""

    def run(script: str, **settings: str) -> subprocess.CompletedProcess[str]:
        site = str(root / "repros" / "inside" / "site")
        return run_script(textwrap.dedent(script), **{"PYTHONPATH": site, "REPROS_SIM": "cuda", **settings})

    return run


@pytest.fixture
def in_place(root: Path, run_python: Run) -> Run:
    """Run a script in an interpreter of its own: torch 2.0 counts its devices once, as it is imported."""
    return simulated(root, run_python)


@pytest.fixture
def in_warm_place(root: Path, run_warm: Run) -> Run:
    """Run a script where torch is imported already."""
    return simulated(root, run_warm)


def printed(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of a script that ran to its end."""
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_tensor_is_on_cuda(in_warm_place: Run) -> None:
    lines = printed(in_warm_place("""
        import torch
        x = torch.ones(2, 3, device="cuda")
        print(x.device, x.is_cuda, x.type(), isinstance(x, torch.cuda.FloatTensor))
        print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(0))
        print((x @ x.t()).tolist(), x.cuda(1).device, x.to("cuda:1").cpu().sum().item())
    """))  # fmt: skip
    assert lines == [
        "cuda:0 True torch.cuda.FloatTensor True",
        "True 2 Simulated CUDA device",
        "[[3.0, 3.0], [3.0, 3.0]] cuda:1 6.0",
    ]


def test_backward_has_the_threads_of_the_caller_whoever_set_another_number(in_warm_place: Run) -> None:
    lines = printed(in_warm_place("""
        import threading
        import torch

        class Counted(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 1

            @staticmethod
            def backward(context, gradient):
                gradient * 1
                print(threading.current_thread() is not threading.main_thread(), torch.get_num_threads())
                return gradient

        torch.set_num_threads(2)
        assert torch.get_num_threads() == 2
        x = torch.ones(3, device="cuda", requires_grad=True)
        pinning = threading.Thread(target=torch.set_num_threads, args=(1,))
        pinning.start()
        pinning.join()
        Counted.apply(x).sum().backward()
    """))  # fmt: skip
    assert lines == ["True 2"]


IN_A_FORK = """
    import os, torch
    print(torch.cuda.is_initialized())
    {before}
    print(torch.cuda.is_initialized(), flush=True)
    if os.fork() == 0:
        try:
            {inside}
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""
RE_INITIALISED, NOT_INITIALISED = "Cannot re-initialize CUDA in forked subprocess.", "CUDA error: initialization error"
FORKED = {
    "a device is chosen": ("torch.cuda.set_device(1)", "torch.cuda.set_device(0)", RE_INITIALISED),
    "a tensor is made": ("torch.ones(1).cuda()", "torch.ones(1, device='cuda')", RE_INITIALISED),
    "a tensor is moved": ("torch.ones(1).cuda()", "torch.ones(1).cuda()", RE_INITIALISED),
    "a tensor is used": ("x = torch.ones(1).cuda()", "x + 1", NOT_INITIALISED),
    "a tensor is read": ("x = torch.ones(1).cuda()", "x.cpu()", NOT_INITIALISED),
}


@pytest.mark.parametrize(("before", "inside", "words"), FORKED.values(), ids=FORKED)
def test_cuda_does_not_survive_a_fork(in_warm_place: Run, before: str, inside: str, words: str) -> None:
    lines = printed(in_warm_place(IN_A_FORK.format(before=before, inside=inside)))
    assert lines[:2] == ["False", "True"]
    assert lines[2].startswith(words)


def test_tensor_types_make_tensors(in_warm_place: Run) -> None:
    lines = printed(in_warm_place("""
        import numpy, torch
        kind = torch.cuda.FloatTensor
        print(kind([1, 2]).tolist(), kind(2, 3).shape, kind(numpy.ones(2)).device, kind().device)
        print(torch.ones(2, dtype=torch.int64).type(kind).type(), torch.ones(2).type("torch.cuda.HalfTensor").device)
        print(torch.cuda.LongTensor([3]).dtype)
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        print(torch.ones(2).device, torch.Tensor(2).device, torch.tensor([1.0]).device, torch.eye(2).device)
        torch.set_default_tensor_type(torch.FloatTensor)
        print(torch.ones(2).device)
    """))  # fmt: skip
    assert lines == [
        "[1.0, 2.0] torch.Size([2, 3]) cuda:0 cuda:0",
        "torch.cuda.FloatTensor cuda:0",
        "torch.int64",
        "cuda:0 cuda:0 cuda:0 cuda:0",
        "cpu",
    ]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("x + x.to('cuda:1')", "cuda:0 and cuda:1!"),
        ("x + c", "cuda:0 and cpu!"),
        ("torch.mm(x, c)", "wrapper_CUDA_mm)"),
        ("torch.mm(x, x, out=c)", "wrapper_CUDA_mm_out_out)"),
        ("torch.nn.functional.embedding(c.long(), x)", "wrapper_CUDA__index_select)"),
        ("torch.cat([x, c])", "wrapper_CUDA_cat)"),
        ("x.numpy()", "can't convert cuda:0 device type tensor to numpy"),
        ("torch.randn(2, device='cuda', generator=torch.Generator())", "Expected a 'cuda' device type for generator"),
        ("c.to('cuda:7')", "CUDA error: invalid device ordinal"),
        ("torch.cuda.set_device(7)", "CUDA error: invalid device ordinal"),
        ("torch.cuda.CUDAGraph().capture_begin()", "CUDA graphs must be captured on a non-default stream"),
    ],
)
def test_errors_are_cuda_s(in_warm_place: Run, expression: str, words: str) -> None:
    lines = printed(in_warm_place(f"""
        import torch
        x, c = torch.ones(2, 2, device="cuda"), torch.zeros(2, 2)
        try:
            {expression}
        except Exception as error:
            print(str(error).replace(chr(10), " "))
    """))  # fmt: skip
    assert words in lines[0]


def test_visible_devices_are_honoured(in_place: Run) -> None:
    script = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"
    assert printed(in_place(script, REPROS_SIM_DEVICES="4", CUDA_VISIBLE_DEVICES="1,3")) == ["True 2"]
    assert printed(in_place(script, REPROS_SIM_DEVICES="4", CUDA_VISIBLE_DEVICES="")) == ["False 0"]


def test_amp_trains(in_warm_place: Run) -> None:
    lines = printed(in_warm_place("""
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).cuda()
        optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.cuda.amp.GradScaler()
        with torch.autocast("cuda"):
            out = model(torch.ones(3, 4, device="cuda"))
        scaler.scale(out.float().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        print(out.dtype, scaler.get_scale(), model.weight.grad.device)
    """))  # fmt: skip
    # The weight's gradient, three times the first scale of 65536, is beyond float16: the step is skipped.
    assert lines == ["torch.float16 32768.0 cuda:0"]


def test_a_generator_s_state_is_a_seed_and_an_offset(in_warm_place: Run) -> None:
    lines = printed(in_warm_place("""
        import torch
        g = torch.Generator("cuda").manual_seed(7)
        before = g.get_state()
        first = torch.rand(3, device="cuda", generator=g)
        g.set_state(before)
        print(before.tolist(), torch.equal(first, torch.rand(3, device="cuda", generator=g)), g.device)
        torch.manual_seed(7)
        print(torch.equal(first, torch.rand(3, device="cuda")))
    """))  # fmt: skip
    assert lines == ["[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] True cuda", "True"]


@pytest.fixture(scope="module")
def of_settings(root: Path, run_python: Run) -> subprocess.CompletedProcess[str]:
    """What one process prints whose settings are read as torch is imported, and one that it starts."""
    script = """
        import subprocess, sys, torch

        x = torch.empty(3, device="cuda")
        print(torch.cuda.memory_allocated(), torch.cuda.get_device_properties(0).name)
        try:
            torch.empty(80 << 30, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            print(torch.__version__, str(error).replace(chr(10), " "))

        def drawn(*devices):
            torch.manual_seed(3)
            ones = [torch.ones(50, device=device) for device in devices]
            return [torch.nn.functional.dropout(tensor + torch.rand_like(tensor)).tolist() for tensor in ones]

        print(drawn("cuda", "cpu", "cuda:1") == drawn("cpu", "cpu", "cpu"))
        own = [torch.rand(2, device="cuda", generator=torch.Generator("cuda").manual_seed(5)).tolist() for _ in "12"]
        print(own[0] == own[1], flush=True)
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
    """
    settings = {"REPROS_SIM_ANNOUNCED": "", "REPROS_SIM_LIKE": "h100", "REPROS_SIM_RANDOM": "cpu"}
    return simulated(root, run_python)(script, **settings)


def test_it_says_once_that_it_is_simulated(of_settings: subprocess.CompletedProcess[str]) -> None:
    name = "Simulated NVIDIA H100 80GB HBM3"
    assert of_settings.stderr == (
        f"simulated GPUs in the place of cuda: 2 x {name} (host memory; nothing here measures a GPU)\n"
    )


def test_memory_is_limited_and_counted_in_cuda_s_blocks(of_settings: subprocess.CompletedProcess[str]) -> None:
    lines = printed(of_settings)
    assert lines[0] == "512 Simulated NVIDIA H100 80GB HBM3"
    version, message = lines[1].split(" ", 1)
    release = tuple(int(part) for part in version.split(".")[:2])
    words = (
        " (GPU 0; 79.10 GiB total capacity; 512 bytes already allocated; 79.10 GiB free"
        if release < (2, 1)
        else ". GPU 0 has a total capacty of 79.10 GiB of which 79.10 GiB is free"  # so spelt up to 2.1
        if release < (2, 2)
        else ". GPU 0 has a total capacity of 79.10 GiB of which 79.10 GiB is free"
    )
    assert message.startswith(f"CUDA out of memory. Tried to allocate 80.00 GiB{words}")


def test_the_devices_can_draw_the_cpu_s_random_numbers(of_settings: subprocess.CompletedProcess[str]) -> None:
    assert printed(of_settings)[2:] == ["True", "True"]


DDP = """
import os, torch, torch.distributed as dist

def train(place, group):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).to(place), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        model(torch.full((2, 3), float(dist.get_rank() + step), device=place)).sum().backward()
        optimizer.step()
    return [round(v, 9) for p in model.parameters() for v in p.flatten().tolist()]

dist.init_process_group("nccl")
results = [train(torch.device("cuda", dist.get_rank()), None)]
try:
    dist.all_reduce(torch.ones(1))
except RuntimeError as error:
    assert "No backend type associated with device type cpu" in str(error), error
results.append(train(torch.device("cpu"), dist.new_group(backend="gloo")))
if dist.get_rank() == 0:
    print(results[0] == results[1], len(results[0]), flush=True)
os._exit(0)  # as Python ends, a thread of Gloo's may abort the process (pytorch#190489)
"""


def test_ddp_under_nccl_equals_the_cpu_under_gloo(in_warm_place: Run, tmp_path: Path) -> None:
    import torch

    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 1):
        pytest.skip("torch 2.0 has no process-group backends for devices other than the CPU and CUDA")
    (tmp_path / "train.py").write_text(DDP)
    words = ["torchrun", "--standalone", "--nproc-per-node", "2", str(tmp_path / "train.py")]
    lines = printed(in_warm_place(f"""
        import runpy, sys
        sys.argv = {words}
        runpy.run_module("torch.distributed.run", run_name="__main__")
    """))  # fmt: skip
    assert [line for line in lines if not line.startswith("[Gloo]")] == ["True 8"]  # 2.9 and 2.10 print those
