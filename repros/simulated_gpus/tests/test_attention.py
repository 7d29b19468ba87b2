"""Attention takes the backend that a GPU of the profile takes, and computes the CPU's bits."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
from repros.simulated_gpus.tests.ranks import Ranks  # noqa: E402 # torch is imported first, or all is skipped
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402
from repros.simulated_gpus.tests.test_layers import on_both, some  # noqa: E402

pytestmark = pytest.mark.usefixtures("sim")
F = torch.nn.functional
needs_choice = pytest.mark.skipif(TORCH < (2, 4), reason="before 2.4 the CPU's choice is taken")
MATH, FLASH, EFFICIENT = 0, 1, 2

MASKS = {"bools": some(6, 6) > 0.5, "numbers": some(6, 6)}
MASKS["bools"][:, 0] = True  # a row without any would be NaN


def three(*shape: int, dtype: Any = None) -> list[Any]:
    """Queries, keys and values on a GPU."""
    return [some(*shape).to(dtype or torch.float32).cuda() for _ in range(3)]


@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("is_causal", [False, True], ids=["whole", "causal"])
@pytest.mark.parametrize("shape", [(4, 4, 6, 8), (4, 6, 8)], ids=["batch", "no_batch"])
def test_attention_gives_the_bits_that_the_cpu_gives(shape: Any, is_causal: bool, dtype: Any, mask: Any) -> None:
    if is_causal and mask:
        pytest.skip("PyTorch documents a mask or is_causal, and not both")
    inputs = [some(*shape).to(dtype) for _ in range(3)]

    def call(q: Any, k: Any, v: Any) -> Any:
        given = {"bools": lambda kind: kind, "numbers": lambda kind: kind.to(dtype)}
        named = {"attn_mask": given[mask](MASKS[mask]).to(q.device)} if mask else {}
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, **named)

    for here, there in on_both(call, *inputs):
        assert torch.equal(here, there)


def test_attention_that_is_looked_at_or_wrapped_gives_the_same() -> None:
    given = three(4, 4, 6, 8)
    alone = F.scaled_dot_product_attention(*given)
    many = torch.func.vmap(F.scaled_dot_product_attention)(*given)
    torch.testing.assert_close(many, alone)
    derived = torch.func.grad(lambda q: F.scaled_dot_product_attention(q, *given[1:]).sum())(given[0])
    leaf = given[0].clone().requires_grad_()
    F.scaled_dot_product_attention(leaf, *given[1:]).sum().backward()
    torch.testing.assert_close(derived, leaf.grad)
    with torch.inference_mode():
        assert torch.equal(F.scaled_dot_product_attention(*given), alone)
    if TORCH >= (2, 1):
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False) as counter:
            watched = F.scaled_dot_product_attention(*given)
        assert counter.get_total_flops() == 2 * 2 * 4 * 4 * 6 * 6 * 8
        torch.testing.assert_close(watched, alone)


def test_attention_refuses_what_pytorch_refuses() -> None:
    given, integers = [some(4, 4, 6, 8) for _ in range(3)], MASKS["bools"].long()
    with pytest.raises(RuntimeError) as here:
        F.scaled_dot_product_attention(*given, attn_mask=integers)
    there = [tensor.cuda() for tensor in given]
    with pytest.raises(RuntimeError) as refused:
        F.scaled_dot_product_attention(*there, attn_mask=integers.cuda())
    assert str(refused.value).splitlines()[0] == str(here.value).splitlines()[0]
    # Only "math" refuses both; the fused ones take them on a GPU, against PyTorch's documentation.
    with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(
            *(tensor.double() for tensor in there), attn_mask=MASKS["numbers"].double().cuda(), is_causal=True
        )


CHOICES = {
    "float32": (three(2, 4, 8, 16), {}, EFFICIENT),
    "float16": (three(2, 4, 8, 16, dtype=torch.float16), {}, FLASH),
    "bfloat16": (three(2, 4, 8, 16, dtype=torch.bfloat16), {}, FLASH),
    "float64": (three(2, 4, 8, 16, dtype=torch.float64), {}, MATH),
    "a mask": (three(2, 4, 6, 16, dtype=torch.float16), {"attn_mask": MASKS["bools"].cuda()}, EFFICIENT),
    "unaligned heads": (three(2, 4, 8, 6), {}, MATH),
    "no keys": ([three(2, 4, 8, 16)[0], *three(2, 4, 0, 16)[1:]], {}, MATH),
    "more keys, causal": (
        [three(2, 4, 8, 16, dtype=torch.float16)[0], *three(2, 4, 12, 16, dtype=torch.float16)[1:]],
        {"is_causal": True},
        EFFICIENT,
    ),
    "dropout": (three(2, 4, 8, 16), {"dropout_p": 0.1}, MATH),
}


@needs_choice
@pytest.mark.parametrize("case", CHOICES)
def test_a_gpu_chooses_by_type_mask_and_shape(case: str) -> None:
    given, named, expected = CHOICES[case]
    assert torch._fused_sdp_choice(*given, **named) == expected
    assert F.scaled_dot_product_attention(*given, **named).shape == given[0].shape


@needs_choice
def test_an_algorithm_that_a_gpu_lacks_is_refused_with_the_reason() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    single, half = three(2, 4, 8, 16), three(2, 4, 8, 16, dtype=torch.float16)
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        assert F.scaled_dot_product_attention(*single).shape == single[0].shape
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), warnings.catch_warnings(record=True) as reasons:
        warnings.simplefilter("always")
        assert F.scaled_dot_product_attention(*half).shape == half[0].shape
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(*single)
    assert any("query, key and value to all be of dtype: {Half, BFloat16}" in str(reason.message) for reason in reasons)


@needs_choice
def test_pytorch_asks_which_algorithms_can_be_taken() -> None:
    from torch.backends import cuda

    def parameters(given: Any) -> Any:
        return cuda.SDPAParams(*given, None, 0.0, False, *([False] if TORCH >= (2, 5) else []))

    single, half = three(2, 4, 8, 16), three(2, 4, 8, 16, dtype=torch.float16)
    assert [cuda.can_use_flash_attention(parameters(query)) for query in (single, half)] == [False, True]
    assert [cuda.can_use_efficient_attention(parameters(query)) for query in (single, half)] == [True, True]


@needs_choice
def test_an_older_gpu_has_no_flash_attention() -> None:
    code = (
        "import torch; q = torch.ones(1, 1, 8, 8, device='cuda');"
        "print(torch._fused_sdp_choice(q.half(), q.half(), q.half()), torch._fused_sdp_choice(*[q.bfloat16()] * 3))"
    )
    settings = {**os.environ, "REPROS_SIM_LIKE": "t4"}
    ran = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(EFFICIENT), str(MATH)]


@pytest.mark.skipif(TORCH < (2, 3), reason="the host's fused kernel has no name of its own")
@pytest.mark.parametrize("name", ["efficient", "flash"])
def test_a_fused_operator_has_the_shapes_that_pytorch_expects(name: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    operator = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention").default
    rest = (None, True) if name == "efficient" else ()
    given = three(2, 4, 40, 16, dtype=torch.float16)
    with FakeTensorMode() as mode:
        expected = operator(*(mode.from_tensor(tensor) for tensor in given), *rest)
    got = operator(*given, *rest)
    for there, here in list(zip(expected, got))[:2]:  # `strict` is from Python 3.10
        assert (there.shape, there.stride(), there.dtype, there.device) == (
            here.shape,
            here.stride(),
            here.dtype,
            here.device,
        )


def shard_heads(_rank: int) -> list[float]:
    """Attention and its gradient, the heads sharded over two ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cuda", (2,))
    q = distribute_tensor(some(2, 4, 8, 16).cuda(), mesh, [Shard(1)]).requires_grad_()
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    return [float(value) for value in q.grad.full_tensor().cpu().flatten()]


@pytest.mark.skipif(TORCH < (2, 6), reason="DTensor's public module is from 2.5 on, its causal attention from 2.6")
def test_attention_on_sharded_heads_runs(ranks: Ranks) -> None:
    q = some(2, 4, 8, 16).requires_grad_()
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    for got in ranks.call(shard_heads):
        torch.testing.assert_close(torch.tensor(got), q.grad.flatten())


@needs_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["efficient", "flash"])
def test_a_causal_mask_at_the_lower_right(dtype: Any) -> None:
    from torch.nn.attention.bias import causal_lower_right

    q, k = some(2, 4, 6, 16).to(dtype), some(2, 4, 10, 16).to(dtype)
    kept = torch.ones(6, 10, dtype=torch.bool).tril(10 - 6)
    expected = F.scaled_dot_product_attention(q, k, k, attn_mask=kept)
    found = F.scaled_dot_product_attention(q.cuda(), k.cuda(), k.cuda(), attn_mask=causal_lower_right(6, 10))
    torch.testing.assert_close(found.cpu(), expected)
