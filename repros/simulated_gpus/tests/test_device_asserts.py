"""Assertions of CUDA's kernels, such as an index within bounds: the error, its words, and the context that is lost."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

INDICES = "there([0, 7])"
CASES = {
    "embedding": (f"F.embedding({INDICES}, x)", "srcIndex < srcSelectDimSize"),
    "index_select": (f"x.index_select(0, {INDICES})", "srcIndex < srcSelectDimSize"),
    "gather": ("x.gather(0, there([[0, 7]]))", "idx_dim >= 0 && idx_dim < index_size"),
    "scatter_": ("x.scatter_(0, there([[0, 7]]), 1.0)", "idx_dim >= 0 && idx_dim < index_size"),
    "scatter_add": ("x.scatter_add(0, there([[0, 7]]), x)", "idx_dim >= 0 && idx_dim < index_size"),
    "scatter_reduce": ("x.scatter_reduce(0, there([[0, 7]]), x, 'amax')", "idx_dim >= 0 && idx_dim < index_size"),
    "one_hot": ("F.one_hot(there([0, 7]), 3)", "idx_dim >= 0 && idx_dim < index_size"),
    "an index": (f"x[{INDICES}]", "-sizes[i] <= index && index < sizes[i]"),
    "a negative index": ("x[there([-5])]", "-sizes[i] <= index && index < sizes[i]"),
    "an assignment": (f"x.index_put_(({INDICES},), there(0.0))", "-sizes[i] <= index && index < sizes[i]"),
    "index_add_": (f"x.index_add_(0, {INDICES}, x[:2].clone())", "dstIndex < dstAddDimSize"),
    "index_copy": (f"x.index_copy(0, {INDICES}, x[:2])", "idx >= 0 && idx < self_dim_size"),
    "index_fill_": (f"x.index_fill_(0, {INDICES}, 1.0)", "idx >= -self_dim_size && idx < self_dim_size"),
    "index_reduce": (f"x.index_reduce(0, {INDICES}, x[:2], 'amax')", "dstIndex < dstAddDimSize"),
    "take": ("x.take(there([100]))", "idx < numel && idx >= -numel"),
    "put_": ("x.put_(there([100]), there([1.0]))", "idx < numel && idx >= -numel"),
    "cross_entropy": ("F.cross_entropy(x, there([0, 1, 2, -1]))", "t >= 0 && t < n_classes"),
    "nll_loss of images": ("F.nll_loss(x.view(1, 4, 3), there([[0, 1, 9]]))", "t >= 0 && t < n_classes"),
    "binary_cross_entropy": ("F.binary_cross_entropy(x, x / 12)", "input_val >= zero && input_val <= one"),
    "_assert_async": ("torch._assert_async(there(0))", "input[0] != 0"),
    "multinomial with replacement": (
        "torch.multinomial(there([1.0, -1.0]), 3, True)",
        "invalid multinomial distribution (encountering probability entry < 0)",
    ),
}
SCRIPT = """
import sys, torch, torch.nn.functional as F
there = lambda values: torch.tensor(values, device="cuda")
x = torch.arange(12.0, device="cuda").view(4, 3)
try:
    {call}
except RuntimeError as error:
    print(type(error).__name__, repr(str(error)))
for after in (lambda: x + 1, lambda: x.cpu(), torch.cuda.synchronize, torch.cuda.Event().synchronize):
    try:
        after()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
print(torch.arange(3)[torch.tensor(2)].item())
"""
ASSERTED = "CUDA error: device-side assert triggered"
ERROR = "AcceleratorError" if TORCH >= (2, 8) else "RuntimeError"


@pytest.mark.parametrize("case", CASES)
def test_the_kernels_assertion_fails_and_the_context_is_lost(case: str, run_warm: Any) -> None:
    call, condition = CASES[case]
    done = run_warm(SCRIPT.format(call=call))
    kind, _, _ = done.stdout.partition(" ")
    first, *after, on_cpu = done.stdout.splitlines()
    assert (kind, ASSERTED in first, after, on_cpu) == (ERROR, True, [ASSERTED] * 4, "2"), done.stderr
    assert f"Assertion `{condition}" in done.stderr
    assert (done.returncode, "terminate" in done.stderr) == (0, False)


@pytest.mark.skipif(TORCH >= (2, 5), reason="from 2.5 on, multinomial asserts")
def test_multinomial_reads_its_numbers_back_before_2_5() -> None:
    with pytest.raises(RuntimeError, match=r"^probability tensor contains either `inf`, `nan` or element < 0"):
        torch.multinomial(torch.tensor([1.0, -1.0], device="cuda"), 1)


@pytest.mark.skipif(TORCH < (2, 5), reason="before 2.5, multinomial reads its numbers back")
def test_multinomial_asserts(run_warm: Any) -> None:
    done = run_warm(SCRIPT.format(call="torch.multinomial(there([1.0, float('nan')]), 1)"))
    assert ASSERTED in done.stdout
    assert "Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed." in done.stderr


@pytest.mark.parametrize("call", [
    lambda x: x[9],
    lambda x: x.gather(5, torch.zeros(1, 1, dtype=torch.long, device="cuda")),
    lambda x: x.index_select(0, torch.zeros(1, 1, dtype=torch.long, device="cuda")),
    lambda x: torch.arange(3)[torch.tensor([7])],
])  # fmt: skip
def test_what_the_host_checks_is_no_assertion(call: Any) -> None:
    x = torch.ones(4, 3, device="cuda")
    with pytest.raises((IndexError, RuntimeError), match=r"(?i)out of (range|bounds)|1-D|Index is supposed"):
        call(x)
    assert (x + 1).sum().item() == 24


ASK_CUDA = """
    import ctypes, importlib.util, sys
    (torch,) = importlib.util.find_spec("torch").submodule_search_locations  # importing it takes seconds
    library = ctypes.CDLL(torch + "/lib/libc10_cuda.so")
    for parameters in ("EiPKcS2_ib", "EiPKcS2_jb", "EiPKcS2_jbPNS0_19CUDAErrorLogCaptureE"):
        if hasattr(library, "_ZN3c104cuda29c10_cuda_check_implementation" + parameters):
            check = library["_ZN3c104cuda29c10_cuda_check_implementation" + parameters]
    check(int(sys.argv[1]), b"file", b"function", 1, True, None)
"""
ASK_SIMULATOR = """
    import sys, torch
    try:
        sys.modules["repros.simulated_gpus.extension"].get().throw_error(int(sys.argv[1]))
    except RuntimeError as error:
        print(error, end="")
"""


@pytest.mark.parametrize("blocking", ["0", "1"])
@pytest.mark.parametrize("code", [3, 101, 400, 710])
def test_the_words_are_those_of_cudas_own_code(code: int, blocking: str, stub: Path, run_warm: Any) -> None:
    from repros.simulated_gpus.tools.cuda_stub import build

    environment = {**build.stub_environ(stub), "CUDA_LAUNCH_BLOCKING": blocking}
    command = [sys.executable, "-c", textwrap.dedent(ASK_CUDA), str(code)]
    # Nothing catches a C++ exception here, so the process ends and prints it.
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)
    words = ended.stderr.partition("what():  ")[2].partition("\nException raised from")[0]
    assert words.startswith("CUDA error: "), ended.stderr
    ours = run_warm(textwrap.dedent(ASK_SIMULATOR), str(code), CUDA_LAUNCH_BLOCKING=blocking)
    assert ours.stdout == words, ours.stderr


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CUDA's runtime without a GPU, for a CUDA build's own code."""
    from repros.simulated_gpus.tools.cuda_stub import build

    try:
        return build.build_stub(tmp_path_factory.mktemp("stub"))
    except build.NoRuntimeError as why:
        pytest.skip(str(why))
