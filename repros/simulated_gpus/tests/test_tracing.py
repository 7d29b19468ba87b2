"""What TorchScript records on a device, and what it runs there, is what it does on the CPU."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")
nn = torch.nn

CONVOLUTIONS = [
    getattr(nn, f"Conv{transposed}{dimensions}d") for transposed in ("", "Transpose") for dimensions in (1, 2, 3)
]


def module_with(kind: Any) -> tuple[Any, Any]:
    """A module of a convolution, and an input, both on the device."""
    torch.manual_seed(0)
    dimensions = int(kind.__name__[-2])
    normalized = getattr(nn, f"BatchNorm{dimensions}d")(4)
    return nn.Sequential(kind(3, 4, 2), normalized, nn.ReLU()).cuda(), torch.rand(2, 3, *[5] * dimensions).cuda()


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("kind", CONVOLUTIONS, ids=lambda kind: kind.__name__)
def test_a_traced_convolution_gives_what_eager_gives(kind: Any, training: bool) -> None:
    module, x = module_with(kind)
    traced = torch.jit.trace(module.train(training), x)
    assert traced.graph_for(x) is not None
    assert "aten::_convolution" in str(traced.inlined_graph)
    here, there = traced(x), module(x)
    assert here.is_cuda
    assert torch.equal(here, there)
    (gradient,) = torch.autograd.grad(traced(x).square().sum(), [module[0].weight])
    (expected,) = torch.autograd.grad(module(x).square().sum(), [module[0].weight])
    assert torch.allclose(gradient, expected)


def test_a_traced_convolution_is_loaded_on_the_cpu_and_the_device() -> None:
    module, x = module_with(nn.Conv2d)
    kept = io.BytesIO()
    torch.jit.save(torch.jit.trace(module.eval(), x), kept)
    for place in ("cpu", "cuda"):
        kept.seek(0)
        loaded = torch.jit.load(kept, map_location=place)
        assert torch.allclose(loaded(x.to(place)).cpu(), module(x).cpu())


def test_a_model_s_graph_can_be_drawn() -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard._pytorch_graph", reason="tensorboard is not installed")
    module, x = module_with(nn.Conv2d)
    drawn, _ = tensorboard.graph(module, x)
    assert any("_convolution" in node.op for node in drawn.node)


def test_a_convolution_is_exported_to_onnx() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    module, x = module_with(nn.Conv2d)
    kept = io.BytesIO()
    old = {"dynamo": False} if "dynamo" in torch.onnx.export.__kwdefaults__ else {}
    torch.onnx.export(module.eval(), (x,), kept, **old)
    assert b"Conv" in kept.getvalue()


def take(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    return x[i]


def take_column(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    return x[:, i]


def take_pairs(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    return x[i, None, i]


def put(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    y = x.clone()
    y[i] = y[i] * 2
    return y


def join(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    return torch.cat([x[i], torch.stack([x[0], x[1]])])


@pytest.mark.parametrize("make", ["script", "trace"])
@pytest.mark.parametrize("function", [take, take_column, take_pairs, put, join], ids=lambda each: each.__name__)
def test_torchscript_indexes_by_a_tensor_on_the_device(function: Any, make: str) -> None:
    x, i = torch.arange(9.0, device="cuda").reshape(3, 3), torch.tensor([2, 0], device="cuda")
    compiled = torch.jit.script(function) if make == "script" else torch.jit.trace(function, (x, i))
    for _ in range(3):  # TorchScript runs another graph from the third call on
        assert torch.equal(compiled(x, i), function(x, i))


def test_torchscript_takes_a_mask_and_an_index_of_the_host() -> None:
    x = torch.arange(9.0, device="cuda").reshape(3, 3)
    taken = torch.jit.script(take)
    assert taken(x, x > 4).tolist() == [5, 6, 7, 8]
    assert taken(x, torch.tensor([1])).tolist() == [[3, 4, 5]]
    with pytest.raises(RuntimeError, match="indices should be either on"):
        taken(x.cpu(), torch.tensor([1], device="cuda"))
