"""Random numbers are CUDA's: the published numbers of a seed, and CUDA's rules for generators."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH
from repros.simulated_gpus.tools.random_numbers.data import read_operators, read_published

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

PUBLISHED = read_published()
OPERATORS = read_operators()

DRAW = """
import json, torch
seed, expression = {seed}, {drawn!r}
torch.manual_seed(seed)
drawn = eval(expression).flatten()[{at}]
print(json.dumps(drawn.tolist()))
"""


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['source']} {row.get('gpu', '')}".strip())
def test_a_seed_gives_the_numbers_that_are_published(row: dict[str, Any], run_warm: Any, run_python: Any) -> None:
    """Many numbers depend on the GPU: on its multiprocessors, and the threads of each."""
    code = DRAW.format(**{"at": list(range(len(row["numbers"]))), **row})
    ended = run_python(code, REPROS_SIM_LIKE=row["like"]) if "like" in row else run_warm(code)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == pytest.approx(row["numbers"], abs=5.1e-5), row["address"]


def kernel_s_file(operator: str) -> str:
    """Return the C++ source, by its stem, that registers an operator's kernel for CUDA."""
    found = re.search(r"^CUDA: registered at (.*?):\d+ ", torch._C._dispatch_dump(f"aten::{operator}"), re.MULTILINE)
    return pathlib.PurePath(found[1]).stem if found else ""


def test_the_documented_operators_are_those_that_draw_cuda_s_numbers() -> None:
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    draw = {name for name in names if kernel_s_file(name.partition("::")[2]).startswith("random")}
    assert draw == {f"aten::{name}" for row in OPERATORS["cuda"] for name in row["operators"]}
    for name in OPERATORS["host"]:
        assert f"aten::{name}" not in draw
        assert torch._C._dispatch_has_kernel(f"aten::{name}")


def offset_after(draw: Any) -> int:
    torch.cuda.manual_seed(3)
    draw()
    state = torch.cuda.get_rng_state()
    assert state.shape == (16,)
    return int(state[8:].view(torch.int64))


ONE_WAVE = 108 * 2048  # threads of the plain profile, an A100's


@pytest.mark.parametrize(
    ("draw", "offset"),
    [
        (lambda: torch.rand(0, device="cuda"), 0),
        (lambda: torch.rand(1, device="cuda"), 4),
        (lambda: torch.rand(4 * ONE_WAVE, device="cuda"), 4),
        (lambda: torch.rand(4 * ONE_WAVE + 1, device="cuda"), 8),
        (lambda: torch.rand(2 * ONE_WAVE + 1, device="cuda", dtype=torch.float64), 8 if TORCH >= (2, 6) else 4),
        (lambda: torch.nn.functional.dropout(torch.ones(9, device="cuda")), 4),
        (lambda: torch.bernoulli(torch.full((9,), 0.5, device="cuda")), 12),
        (lambda: torch.randperm(9, device="cuda"), 16),
        (lambda: torch.multinomial(torch.ones(9, device="cuda"), 2), 4),
        (lambda: torch.multinomial(torch.ones(9, device="cuda"), 20, replacement=True), 4),
        (lambda: torch.poisson(torch.ones(9, device="cuda")), 4),
    ],
)
def test_the_offset_moves_on_as_cuda_s(draw: Any, offset: int) -> None:
    assert offset_after(draw) == offset


def test_a_second_wave_of_threads_begins_with_their_second_number() -> None:
    torch.manual_seed(0)
    large = torch.rand(ONE_WAVE + 2, device="cuda")
    torch.manual_seed(0)
    small = torch.rand(2, device="cuda")
    assert torch.equal(large[:2], small)
    # A thread's four numbers: what multinomial's threads and those of bernoulli with a tensor take in a row.
    torch.manual_seed(0)
    below = torch.bernoulli(torch.tensor([0.0, float(large[ONE_WAVE]), 0.0, 0.0], device="cuda"))
    assert below.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_half_types_round_what_float32_draws_and_float64_draws_its_own(dtype: Any) -> None:
    def draw(dtype: Any) -> Any:
        torch.manual_seed(0)
        return torch.randn(5, dtype=dtype, device="cuda")

    if dtype == torch.float64:
        assert not torch.allclose(draw(dtype).float(), draw(torch.float32))
    else:
        assert torch.equal(draw(dtype), draw(torch.float32).to(dtype))


def test_a_tensor_is_filled_in_the_order_of_its_memory() -> None:
    torch.manual_seed(0)
    flat = torch.rand(6, device="cuda")
    torch.manual_seed(0)
    transposed = torch.empty(3, 2, device="cuda").t().uniform_()
    assert torch.equal(transposed.t().flatten(), flat)
    torch.manual_seed(0)
    strided = torch.zeros(3, 4, device="cuda")
    strided[:, ::2].uniform_()
    assert torch.equal(strided[:, ::2].flatten(), flat)
    assert not strided[:, 1::2].any()


@pytest.mark.parametrize("shape", [(64,), (5,), (6,), (8, 3)])
def test_dropout_s_gradient_has_its_mask(shape: tuple[int, ...]) -> None:
    given = torch.ones(shape, device="cuda", requires_grad=True)
    kept = torch.nn.functional.dropout(given, 0.5)
    kept.sum().backward()
    assert torch.equal(given.grad, kept)
    assert set(kept.flatten().tolist()) <= {0.0, 2.0}


def test_a_permutation_has_every_index_once() -> None:
    for n in (1, 2, 9, 1000, 70000):
        order = torch.randperm(n, device="cuda")
        assert torch.equal(order.sort().values, torch.arange(n, device="cuda"))
    out = torch.empty(0, dtype=torch.int32, device="cuda")
    assert torch.randperm(7, out=out, dtype=torch.int32, device="cuda").sort().values.tolist() == list(range(7))


def test_samples_follow_the_weights() -> None:
    weights = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]], device="cuda")
    torch.manual_seed(1)
    drawn = torch.multinomial(weights, 4000, replacement=True)
    assert drawn.shape == (2, 4000)
    assert 0.72 < (drawn[0] == 2).float().mean() < 0.78
    assert set(drawn[0].tolist()) == {1, 2}
    assert set(drawn[1].tolist()) == {0}
    assert sorted(torch.multinomial(weights[0], 2).tolist()) == [1, 2]


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda to: to.uniform_(-1, 3), 1, 1.1547),
        (lambda to: to.normal_(2, 3), 2, 3),
        (lambda to: to.exponential_(2), 0.5, 0.5),
        (lambda to: to.geometric_(0.5), 2, 1.4142),
        (lambda to: to.log_normal_(0, 0.5), 1.1331, 0.6039),
        (lambda to: to.bernoulli_(0.25), 0.25, 0.4330),
        (lambda to: to.random_(0, 11), 5, 3.1623),
        (lambda to: torch.normal(torch.full_like(to, 2), 3.0), 2, 3),
    ],
    ids=["uniform", "normal", "exponential", "geometric", "log_normal", "bernoulli", "random", "normal of tensors"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_are_distributed_as_asked(draw: Any, mean: float, deviation: float, dtype: Any) -> None:
    torch.manual_seed(5)
    drawn = draw(torch.empty(200_000, dtype=dtype, device="cuda")).double()
    assert drawn.mean().item() == pytest.approx(mean, abs=0.01 * max(1, deviation))
    assert drawn.std().item() == pytest.approx(deviation, rel=0.02)


CPU = """
import torch
torch.manual_seed(7)
cpu = torch.randn(5), torch.nn.functional.dropout(torch.ones(40)), torch.randperm(9)
torch.manual_seed(7)
torch.set_default_device("cuda")
cuda = torch.randn(5), torch.nn.functional.dropout(torch.ones(40)), torch.randperm(9)
torch.set_default_device("cpu")
print(all(torch.equal(a, b.cpu()) for a, b in zip(cpu, cuda)))
own = torch.randn(3, generator=torch.Generator().manual_seed(2))
print(torch.equal(torch.randn(3, device="cuda", generator=torch.Generator("cuda").manual_seed(2)).cpu(), own))
"""


def test_the_cpu_s_numbers_are_drawn_if_asked_for(run_python: Any) -> None:
    ran = run_python(CPU, REPROS_SIM_RANDOM="cpu")
    assert ran.stdout.split() == ["True", "True"], ran.stderr
