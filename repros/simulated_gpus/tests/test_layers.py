"""Layers whose algorithm PyTorch chooses by device type compute the CPU's results on the device."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402 # torch is imported first, or all is skipped

pytestmark = pytest.mark.usefixtures("sim")
F = torch.nn.functional


def results(call: Any, *inputs: Any, device: Any) -> list[Any]:
    """Return a call's result on a device and the gradients of its inputs, moved to the CPU."""
    there = [tensor.detach().to(device).requires_grad_() for tensor in inputs]
    given = call(*there)
    (given * torch.arange(float(given.numel()), device=device).reshape(given.shape)).sum().backward()
    assert given.device.type == device
    return [tensor.detach().cpu() for tensor in (given, *(parameter.grad for parameter in there))]


def on_both(call: Any, *inputs: Any) -> Any:
    """Pairs of the CPU's and the device's results."""
    both = [results(call, *inputs, device=device) for device in ("cpu", "cuda")]
    return zip(*both)  # `strict` is from Python 3.10


def some(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


EXACT = {
    "addr": (torch.addr, (some(5, 10), some(5), some(10))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (7,), w, b), (some(5, 7), some(7), some(7))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (some(5, 6, 3), some(6), some(6))),
    "mish": (F.mish, (some(100),)),
    "mse_loss": (F.mse_loss, (some(50), some(50))),
    "conv2d": (F.conv2d, (some(2, 3, 8, 8), some(4, 3, 3, 3), some(4))),
    "conv_transpose2d": (F.conv_transpose2d, (some(2, 3, 8, 8), some(3, 4, 3, 3), some(4))),
    "ldexp": (lambda x: torch.ldexp(x, torch.tensor([1, 0, -2], device=x.device)), (some(4, 3),)),
}
if hasattr(F, "rms_norm"):
    EXACT["rms_norm"] = (lambda x, w: F.rms_norm(x, (7,), w), (some(5, 7), some(7)))
    EXACT["rms_norm without weight"] = (lambda x: F.rms_norm(x, (5, 7)), (some(3, 5, 7),))


@pytest.mark.parametrize("name", EXACT)
def test_a_layer_gives_the_bits_that_the_cpu_gives(name: Any) -> None:
    call, inputs = EXACT[name]
    for here, there in on_both(call, *inputs):
        assert torch.equal(here, there)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("shape", "normalized"), [((4, 6), (6,)), ((2, 3, 4), (3, 4)), ((5,), (5,))], ids=str)
@pytest.mark.parametrize("has_weight", [True, False], ids=["weight", "no_weight"])
def test_rms_norm_has_the_cpu_s_gradients(dtype: Any, shape: Any, normalized: Any, has_weight: bool) -> None:
    if not hasattr(F, "rms_norm"):
        pytest.skip("torch has RMSNorm from 2.4 on")
    inputs = [some(*shape).to(dtype), *([some(*normalized).to(dtype)] if has_weight else [])]
    for here, there in on_both(lambda x, *weight: F.rms_norm(x, normalized, *weight), *inputs):
        torch.testing.assert_close(there, here)


@pytest.mark.parametrize(
    ("product", "shapes"),
    [
        (torch.mm, [(3, 4), (4, 5)]),
        (torch.bmm, [(2, 3, 4), (2, 4, 5)]),
        (torch.addmm, [(3, 5), (3, 4), (4, 5)]),
        (torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    ],
    ids=["mm", "bmm", "addmm", "baddbmm"],
)
def test_a_product_of_half_types_may_be_wider(product: Any, shapes: Any) -> None:
    if TORCH < (2, 8):
        pytest.skip("products have `out_dtype` from 2.8 on")
    given = [some(*shape).bfloat16().cuda() for shape in shapes]
    wide = product(*given, out_dtype=torch.float32)
    assert wide.dtype == torch.float32
    assert torch.equal(wide, product(*(tensor.float() for tensor in given)))
    out = torch.empty(0, device="cuda")
    assert product(*given, out_dtype=torch.float32, out=out) is out
    assert torch.equal(out, wide)
    with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"):
        product(*given, out_dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64], ids=str)
@pytest.mark.parametrize(("bins", "least", "most"), [(4, 0, 3), (3, 2, 9), (5, 0, 0)])
def test_integers_have_a_histogram_as_on_a_gpu(dtype: Any, bins: int, least: int, most: int) -> None:
    values = torch.randint(1, 12, (60,), generator=torch.Generator().manual_seed(0)).to(dtype)
    if least == most:  # then CUDA takes the values' own
        lowest, highest = int(values.min()), int(values.max())
    else:
        lowest, highest = least, most
    counts = [0] * bins
    for value in values.tolist():
        if lowest <= value <= highest:
            counts[min((value - lowest) * bins // (highest - lowest), bins - 1)] += 1
    counted = torch.histc(values.cuda(), bins, least, most)
    assert counted.dtype == dtype
    assert counted.tolist() == counts
    out = torch.empty(0, dtype=dtype, device="cuda")
    assert torch.histc(values.cuda(), bins, least, most, out=out) is out
    assert out.tolist() == counts


@pytest.mark.parametrize(
    ("dtype", "words"),
    [(torch.float16, "HalfTensor is not supported"), (torch.bfloat16, "\"histc\" not implemented for 'BFloat16'")],
)
def test_half_types_have_no_histogram_on_a_gpu(dtype: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        torch.histc(torch.ones(3, dtype=dtype, device="cuda"), 4)


def test_a_power_of_two_mixes_devices_as_other_operators_do() -> None:
    x, exponents = some(3).cuda(), torch.tensor([1, 0, -2])
    assert torch.equal(torch.ldexp(x, torch.tensor(2)).cpu(), x.cpu() * 4)
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        torch.ldexp(x, exponents)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_does_what_it_does_on_the_cpu(layer: Any, bias: Any) -> None:
    settings = {"num_layers": 2, "bias": bias, "bidirectional": True}

    def run(x: Any, *parameters: Any) -> Any:
        there = getattr(torch.nn, layer)(3, 4, dtype=x.dtype, **settings).to(x.device)
        names = [name for name, _ in there.named_parameters()]
        named = dict(zip(names, parameters))  # `strict` is from Python 3.10
        return torch.func.functional_call(there, named, (x,))[0]

    shapes = [tensor.shape for tensor in getattr(torch.nn, layer)(3, 4, **settings).parameters()]
    # In float64: both sum in an order of their own, and over five steps float32's error depends on the processor.
    inputs = (some(5, 2, 3).double(), *(some(*shape).double() for shape in shapes))
    for here, there in on_both(run, *inputs):
        torch.testing.assert_close(there, here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell"])
def test_only_one_state_of_a_cell_may_be_used(cell: Any) -> None:
    gradients = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        layer = getattr(torch.nn, cell)(3, 4).to(device)
        state = layer(torch.ones(2, 3, device=device))
        (state[1] if cell == "LSTMCell" else state).sum().backward()
        gradients[device] = layer.weight_ih.grad.cpu()
    torch.testing.assert_close(gradients["cuda"], gradients["cpu"])


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.l1_loss], ids=lambda loss: loss.__name__)
def test_a_loss_warns_of_nothing(loss: Any) -> None:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert loss(torch.ones(3, device="cuda"), torch.zeros(3, device="cuda")).shape == ()
    finally:
        torch.set_warn_always(before)
