"""bitsandbytes on sim: 0.48.2 and later go through PyTorch's dispatcher and run; 0.45 and earlier look for CUDA."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")


@pytest.fixture(scope="module")
def bnb(sim: Any) -> Any:
    return pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed in this environment")


@pytest.fixture(scope="module")
def version(bnb: Any) -> Any:
    from repros.inside.sim.bridges import installed_release

    return installed_release("bitsandbytes")


def quantized(bnb: Any, device: Any, kind: Any) -> Any:
    torch.manual_seed(0)
    if kind == "4 bits":
        layer = bnb.nn.Linear4bit(64, 64, compute_dtype=torch.float32)
    else:
        layer = bnb.nn.Linear8bitLt(64, 64, has_fp16_weights=False)
    layer.load_state_dict(torch.nn.Linear(64, 64).state_dict())
    x = torch.linspace(-1, 1, 128).reshape(2, 64)
    return layer.to(device)(x.to(device, torch.float32 if kind == "4 bits" else torch.float16))


@pytest.mark.parametrize("kind", ["4 bits", "8 bits"])
def test_a_quantized_layer(bnb: Any, version: Any, kind: Any) -> None:
    if version < (0, 48):
        # It quantizes in `Tensor.cuda` and `Module.to("cuda")` only, so these weights are not quantized.
        words = (
            r"^$" if kind == "4 bits" else r"on the same GPU|no NVIDIA driver"
        )  # a bare assert on its quantization state
        with pytest.raises((AssertionError, RuntimeError), match=words):
            quantized(bnb, "sim", kind)
        return
    there, here = quantized(bnb, "sim:1", kind), quantized(bnb, "cpu", kind)
    assert there.device == torch.device("sim:1")
    assert torch.allclose(there.cpu().float(), here.float(), atol=1e-3)


def test_blocks_are_quantized_and_restored(bnb: Any, version: Any) -> None:
    values = torch.linspace(-1, 1, 4096, device="sim:1")
    if version < (0, 48):
        with pytest.raises((RuntimeError, NotImplementedError), match=r"NVIDIA|GPU"):
            bnb.functional.quantize_blockwise(values)
        return
    codes, state = bnb.functional.quantize_blockwise(values)
    assert codes.device == torch.device("sim:1")
    assert (bnb.functional.dequantize_blockwise(codes, state) - values).abs().max() < 0.02


def test_an_optimizer_with_eight_bits(bnb: Any, version: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(8192, device="sim:1"))
    weight.grad = torch.ones_like(weight)
    optimizer = bnb.optim.Adam8bit([weight], lr=0.1)
    if version < (0, 50):
        # 0.43 and 0.44 need a driver; 0.45 has its functions, 0.48 and 0.49 the operator's kernels for CUDA only.
        words = r"no NVIDIA driver|str2optimizer8bit_blockwise|no CPU kernel to run it with"
        with pytest.raises((RuntimeError, NotImplementedError, NameError), match=words):
            optimizer.step()
        return
    optimizer.step()
    assert weight.mean().item() == pytest.approx(0.9, abs=1e-3)
