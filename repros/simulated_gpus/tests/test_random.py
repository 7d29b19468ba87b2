"""Random numbers are CUDA's: those that public threads and tests print for a seed, and CUDA's rules for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

WEBUI = "https://github.com/AUTOMATIC1111/stable-diffusion-webui/blob/master/modules/rng_philox.py"
TENSORRT = "https://github.com/NVIDIA/TensorRT-LLM, test of ReDrafter (test_beams2tree and its kin)"
ISSUES = "https://github.com/pytorch/pytorch/issues/"

# Where it is printed, the seed, what is drawn, the first numbers that are printed there.
PUBLISHED: dict[str, Any] = {
    "randn, 0": (
        WEBUI, 0, lambda: torch.randn(3, 4, device="cuda"),
        [-0.92466259, -0.42534415, -2.6438457, 0.14518388, -0.12086647, -0.57972564, -0.62285122, -0.32838709,
         -1.07454231, -0.36314407, -1.67105067, 2.26550497],
    ),
    "randn, 10": (ISSUES + "79496", 10, lambda: torch.randn(3, device="cuda"), [-0.1029, 1.6810, -0.2708]),
    "randn, 42": (ISSUES + "158398", 42, lambda: torch.randn(3, device="cuda"), [0.1940, 2.1614, -0.1721]),
    "normal_, 14": (
        ISSUES + "97097", 14, lambda: torch.empty(3, device="cuda").normal_(5, 5**0.5), [2.8731, 5.2727, 2.9889],
    ),
    "Uniform, 0": (
        ISSUES + "47347", 0,
        lambda: torch.distributions.Uniform(*torch.tensor([0.0, 1.0], device="cuda")).rsample((5,)),
        [0.3990, 0.5167, 0.0249, 0.9401, 0.9459],
    ),
    "rand, 0": (
        TENSORRT, 0, lambda: torch.rand(3, 4, device="cuda"),
        [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203, 0.2290, 0.9096, 0.1183, 0.0752],
    ),
    "Linear, 42": (
        "https://github.com/mrdbourke/pytorch-deep-learning/issues/759", 42,
        lambda: torch.cat([each.flatten() for each in torch.nn.Linear(1, 1, device="cuda").parameters()]),
        [0.2259, 0.9754],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_seed_gives_the_numbers_that_are_published(name: str) -> None:
    source, seed, draw, printed = PUBLISHED[name]
    torch.manual_seed(seed)
    drawn = draw().flatten()[: len(printed)].cpu()
    torch.testing.assert_close(drawn.double(), torch.tensor(printed).double(), atol=5.1e-5, rtol=0, msg=source)


LAST = """
import torch
generator = torch.Generator("cuda").manual_seed(1)
print(torch.randn(49 * 12 * 112 * 144, device="cuda", generator=generator)[-3:].tolist())
generator.manual_seed(1)
torch.cuda.manual_seed(1)
print((torch.nn.functional.dropout(torch.ones(512 * 4 * 1024, device="cuda"), 0.1) == 0).nonzero().flatten().tolist())
"""


@pytest.mark.parametrize(
    ("like", "last"),
    [("a100", [0.1549, -0.6797, -0.1656]), ("h100", [-0.6970, -0.7780, 0.3267])],
)
def test_many_numbers_depend_on_the_gpu_as_published(run_python: Any, like: str, last: list[float]) -> None:
    """The last of 9 million, which pytorch#143086 prints for an A100 and an H100."""
    ran = run_python(LAST, REPROS_SIM_LIKE=like)
    assert ran.returncode == 0, ran.stderr
    drawn = torch.tensor(json.loads(ran.stdout.splitlines()[0]))
    torch.testing.assert_close(drawn, torch.tensor(last), atol=5.1e-5, rtol=0)


def test_dropout_drops_what_is_published(run_python: Any) -> None:
    """What intel/torch-xpu-ops#2926 prints for an RTX 4080 SUPER, 80 multiprocessors of 1536 threads, as an A10G."""
    ran = run_python(LAST, REPROS_SIM_LIKE="a10g")
    assert ran.returncode == 0, ran.stderr
    zeros = json.loads(ran.stdout.splitlines()[1])
    assert zeros[:3] == [8, 14, 20]
    assert zeros[-3:] == [2097121, 2097140, 2097151]


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
    apart = torch.zeros(3, 4, device="cuda")
    apart[:, ::2].uniform_()
    assert torch.equal(apart[:, ::2].flatten(), flat)
    assert not apart[:, 1::2].any()


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
