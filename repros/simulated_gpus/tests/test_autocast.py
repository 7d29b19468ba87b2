"""Autocast computes each operator in the type of CUDA's autocast."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

half, single = torch.float16, torch.float32
F = torch.nn.functional


def rows() -> Any:
    return torch.arange(8.0, device="cuda").reshape(2, 4) / 8


# torch/docs "CUDA Ops that can autocast to float16", "... to float32", "... promote to the widest input type".
OPERATORS = {
    "matmul": (lambda x: x @ x.t(), half),
    "linear": (lambda x: F.linear(x, x), half),
    "addmm": (lambda x: torch.addmm(torch.zeros(2, 2, device="cuda"), x, x.t()), half),
    "bmm": (lambda x: torch.bmm(x[None], x.t()[None]), half),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), half),
    "multi_dot": (lambda x: torch.linalg.multi_dot([x, x.t(), x]), half),
    "conv1d": (lambda x: F.conv1d(x[None], torch.ones(2, 2, 1, device="cuda")), half),
    "prelu": (lambda x: F.prelu(x, torch.ones(1, device="cuda")), half),
    "exp": (lambda x: x.half().exp(), single),
    "pow": (lambda x: x.half() ** 2, single),
    "layer_norm": (lambda x: F.layer_norm(x.half(), (4,)), single),
    "mse_loss": (lambda x: F.mse_loss(x.half(), x.half()), single),
    "norm": (lambda x: torch.norm(x.half()), single),
    "norm of a dimension": (lambda x: torch.norm(x.half(), 2, 1), single),
    "sum": (lambda x: x.half().sum(), single),
    "softmax": (lambda x: x.half().softmax(-1), single),
    "softmax asked for a type": (lambda x: x.softmax(-1, dtype=half), half),
    "cumsum": (lambda x: x.half().cumsum(0), single),
    "cat": (lambda x: torch.cat([x, x.half()]), single),
    "cat of halves": (lambda x: torch.cat([x.half(), x.half()]), half),
    "addcmul": (lambda x: torch.addcmul(x, x.half(), x), single),
    "dot": (lambda x: torch.dot(x[0], x[1]), single),
    "add": (lambda x: x + x, single),
    "relu": (lambda x: x.half().relu(), half),
}


@pytest.mark.parametrize(("operator", "dtype"), OPERATORS.values(), ids=OPERATORS.keys())
def test_an_operator_is_computed_in_its_type(operator: Any, dtype: Any) -> None:
    with torch.autocast("cuda"):
        result = operator(rows())
    assert (result.dtype, result.device.type) == (dtype, "cuda")
    torch.testing.assert_close(result.float().cpu(), operator(rows()).float().cpu(), rtol=1e-2, atol=1e-2)


IN_HALF: dict[str, Any] = {
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(4, dtype=torch.long, device=x.device)),
    "nll of probabilities": lambda x: F.cross_entropy(x, x.detach().softmax(1)),
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "softplus": F.softplus,
    "hardswish": F.hardswish,
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "mse_loss": lambda x: F.mse_loss(x, x.detach() + 1),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x.detach() + 1),
    "max_pool": lambda x: F.max_pool2d(x[None, None], 2),
    "avg_pool": lambda x: F.avg_pool2d(x[None, None], 2),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "convolution": lambda x: F.conv2d(x[None, None], torch.ones(2, 1, 3, 3, dtype=x.dtype, device=x.device)),
    "linear": lambda x: F.linear(x, torch.ones(3, 8, dtype=x.dtype, device=x.device)),
    "bmm": lambda x: torch.bmm(x[None], x.t()[None]),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "cumsum": lambda x: x.cumsum(0),
    "norm": lambda x: x.norm(),
    "prod": lambda x: x.prod(1),
    "logsumexp": lambda x: x.logsumexp(1),
}


@pytest.mark.parametrize("name", IN_HALF)
def test_float16_is_derived(name: str) -> None:
    gradients = []
    for dtype, device in ((single, "cpu"), (half, "cuda")):
        x = (torch.arange(32.0).reshape(4, 8).sin() + 1.5).to(device, dtype).requires_grad_()
        IN_HALF[name](x).pow(2).sum().backward()
        assert x.grad.dtype == dtype
        gradients.append(x.grad.float().cpu())
    torch.testing.assert_close(gradients[1], gradients[0], rtol=2e-2, atol=2e-2)


def test_bfloat16_where_it_is_asked_for_and_nothing_where_it_is_off() -> None:
    x = rows()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ x.t()).dtype == torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x.t()).dtype == single
    assert (x @ x.t()).dtype == single


def test_integers_doubles_and_cpu_tensors_are_left_alone() -> None:
    with torch.autocast("cuda"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == single
        assert (
            torch.ones(2, 2, device="cuda").double() @ torch.ones(2, 2, device="cuda").double()
        ).dtype == torch.double
        assert torch.ones(2, 2, device="cuda", dtype=torch.int64).sum().dtype == torch.int64


def test_a_loss_that_is_unsafe_is_refused_as_on_cuda() -> None:
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="BCELoss are unsafe to autocast"):
        F.binary_cross_entropy(rows(), rows())


def test_parameters_are_cast_once_and_gradients_come_back_in_float32() -> None:
    layer = torch.nn.Linear(4, 2).to("cuda")
    with torch.autocast("cuda"):
        (layer(rows()) + layer(rows())).float().sum().backward()
    assert layer.weight.grad.dtype == single
    torch.testing.assert_close(layer.weight.grad.cpu(), 2 * rows().sum(0).cpu().expand(2, 4))


def test_the_modules_own_context_is_the_same() -> None:
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert (rows() @ rows().t()).dtype == torch.bfloat16


def test_gradients_are_scaled_and_a_step_with_infinities_is_left_out() -> None:
    scaler = torch.cuda.amp.GradScaler(init_scale=8.0)
    layer = torch.nn.Linear(2, 1, bias=False).to("cuda")
    optimizer = torch.optim.SGD(layer.parameters(), 1.0)
    before = layer.weight.detach().cpu().clone()
    with torch.autocast("cuda"):
        loss = layer(torch.ones(1, 2, device="cuda")).sum()
    scaler.scale(loss).backward()
    assert layer.weight.grad.cpu().tolist() == [[8.0, 8.0]]
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(layer.weight.detach().cpu(), before - 1)
    layer.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(layer.weight.detach().cpu(), before - 1)
    assert scaler.get_scale() == 4.0


def test_float16_is_computed_where_the_cpu_lacks_it() -> None:
    x = rows().half()
    torch.testing.assert_close((x @ x.t()).cpu().float(), (x.float() @ x.float().t()).cpu(), rtol=1e-3, atol=1e-3)
    out = torch.empty(0, dtype=half, device="cuda")
    assert torch.mm(x, x.t(), out=out) is out
    assert (out.dtype, tuple(out.shape)) == (half, (2, 2))
    assert x.clone().exp_().dtype == half
