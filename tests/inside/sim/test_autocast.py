"""Autocast computes each operator in the type of CUDA's autocast."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = [
    pytest.mark.usefixtures("sim"),
    pytest.mark.skipif(
        not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"),
        reason="torch 2.0 has autocast for CUDA and the CPU only",
    ),
]

half, single = torch.float16, torch.float32
F = torch.nn.functional


def rows() -> Any:
    return torch.arange(8.0, device="sim").reshape(2, 4) / 8


# torch/docs "CUDA Ops that can autocast to float16", "... to float32", "... promote to the widest input type".
OPERATORS = {
    "matmul": (lambda x: x @ x.t(), half),
    "linear": (lambda x: F.linear(x, x), half),
    "addmm": (lambda x: torch.addmm(torch.zeros(2, 2, device="sim"), x, x.t()), half),
    "bmm": (lambda x: torch.bmm(x[None], x.t()[None]), half),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), half),
    "multi_dot": (lambda x: torch.linalg.multi_dot([x, x.t(), x]), half),
    "conv1d": (lambda x: F.conv1d(x[None], torch.ones(2, 2, 1, device="sim")), half),
    "prelu": (lambda x: F.prelu(x, torch.ones(1, device="sim")), half),
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
    with torch.autocast("sim"):
        result = operator(rows())
    assert (result.dtype, result.device.type) == (dtype, "sim")
    torch.testing.assert_close(result.float().cpu(), operator(rows()).float().cpu(), rtol=1e-2, atol=1e-2)


def test_bfloat16_where_it_is_asked_for_and_nothing_where_it_is_off() -> None:
    x = rows()
    with torch.autocast("sim", dtype=torch.bfloat16):
        assert (x @ x.t()).dtype == torch.bfloat16
        with torch.autocast("sim", enabled=False):
            assert (x @ x.t()).dtype == single
    assert (x @ x.t()).dtype == single


def test_integers_doubles_and_cpu_tensors_are_left_alone() -> None:
    with torch.autocast("sim"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == single
        assert (torch.ones(2, 2, device="sim").double() @ torch.ones(2, 2, device="sim").double()).dtype == torch.double
        assert torch.ones(2, 2, device="sim", dtype=torch.int64).sum().dtype == torch.int64


def test_a_loss_that_is_unsafe_is_refused_as_on_cuda() -> None:
    with torch.autocast("sim"), pytest.raises(RuntimeError, match="BCELoss are unsafe to autocast"):
        F.binary_cross_entropy(rows(), rows())


def test_parameters_are_cast_once_and_gradients_come_back_in_float32() -> None:
    layer = torch.nn.Linear(4, 2).to("sim")
    with torch.autocast("sim"):
        (layer(rows()) + layer(rows())).float().sum().backward()
    assert layer.weight.grad.dtype == single
    torch.testing.assert_close(layer.weight.grad.cpu(), 2 * rows().sum(0).cpu().expand(2, 4))


def test_the_modules_own_context_is_the_same() -> None:
    with torch.sim.amp.autocast(dtype=torch.bfloat16):
        assert (rows() @ rows().t()).dtype == torch.bfloat16


# Operators that autocast.cpp does not list, which are computed in float32. Look up an operator that a new PyTorch adds
# to CUDA's autocast, and add it to one list or the other.
IN_FLOAT32 = frozenset(
    """
    acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity dist erfinv exp expm1
    frobenius_norm group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm linalg_matrix_sqrth log log10
    log1p log2 logsumexp
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss native_layer_norm nll_loss nll_loss2d
    nuclear_norm pdist poisson_nll_loss pow reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss
    softplus tan triplet_margin_loss _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """.split()  # noqa: SIM905 # one to a line would fill a page
)
OF_CUDNN = frozenset(["_cudnn_rnn", "cudnn_convolution", "cudnn_convolution_transpose"])
"""Operators that only CUDA has."""


def test_every_operator_of_cudas_autocast_has_a_policy(root: Any) -> None:
    source = (root / "repros/inside/sim/csrc/autocast.cpp").read_text()
    named = set(re.findall(r'"(\w+)"', source[: source.index("std::string bare_name")]))
    named |= {"norm", "binary_cross_entropy"}
    of_cuda = set()
    for operator in torch._C._dispatch_get_all_op_names():
        with contextlib.suppress(RuntimeError):
            if torch._C._dispatch_has_kernel_for_dispatch_key(operator, "AutocastCUDA"):
                of_cuda.add(operator.removeprefix("aten::").partition(".")[0])
    assert len(of_cuda) > 80
    assert of_cuda - named - IN_FLOAT32 - OF_CUDNN == set()
    assert not named & IN_FLOAT32


@pytest.mark.skipif(not hasattr(torch, "GradScaler") and not hasattr(torch.amp, "GradScaler"), reason="from torch 2.3")
def test_gradients_are_scaled_and_a_step_with_infinities_is_left_out() -> None:
    scaler = torch.amp.GradScaler("sim", init_scale=8.0)
    layer = torch.nn.Linear(2, 1, bias=False).to("sim")
    optimizer = torch.optim.SGD(layer.parameters(), 1.0)
    before = layer.weight.detach().cpu().clone()
    with torch.autocast("sim"):
        loss = layer(torch.ones(1, 2, device="sim")).sum()
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
    out = torch.empty(0, dtype=half, device="sim")
    assert torch.mm(x, x.t(), out=out) is out
    assert (out.dtype, tuple(out.shape)) == (half, (2, 2))
    assert x.clone().exp_().dtype == half
