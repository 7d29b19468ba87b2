"""Recurrent layers refuse what cuDNN refuses, and torch.backends.cudnn answers as in a CUDA build."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")
nn, F, cudnn = torch.nn, torch.nn.functional, torch.backends.cudnn

LAYERS = {
    "lstm": lambda: nn.LSTM(8, 4, num_layers=2, bidirectional=True),
    "lstm with a projection": lambda: nn.LSTM(8, 4, proj_size=3, batch_first=True),
    "gru": lambda: nn.GRU(8, 4, batch_first=True),
    "rnn": lambda: nn.RNN(8, 4, bias=False),
    "rnn with relu": lambda: nn.RNN(8, 4, nonlinearity="relu"),
}
LAYER = pytest.mark.parametrize("name", LAYERS)
NO_EVAL = "cudnn RNN backward can only be called in training mode"
NO_SECOND = "Double backwards is not supported for CuDNN RNNs due to limitations in the CuDNN API"


def layer_and_input(name: str) -> tuple[Any, Any]:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    return layer.cuda(), torch.rand(3, 5, 8).cuda().requires_grad_()


def second(layer: Any, x: Any) -> Any:
    """The gradient of a gradient's square."""
    (first,) = torch.autograd.grad(layer(x)[0].square().sum(), [x], create_graph=True)
    return torch.autograd.grad(first.square().sum(), [x])


@LAYER
def test_a_layer_in_eval_mode_has_no_derivative(name: str) -> None:
    layer, x = layer_and_input(name)
    output = layer.eval()(x)[0]
    with pytest.raises(RuntimeError, match=NO_EVAL):
        output.sum().backward()


@LAYER
def test_a_layer_has_no_second_derivative(name: str) -> None:
    layer, x = layer_and_input(name)
    with pytest.raises(RuntimeError, match=NO_SECOND):
        second(layer, x)


@LAYER
def test_without_cudnn_neither_is_refused(name: str) -> None:
    layer, x = layer_and_input(name)
    with cudnn.flags(enabled=False):
        layer.eval()(x)[0].sum().backward()
        assert second(layer, x)[0].abs().sum() > 0


@LAYER
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_its_gradients_are_those_without_cudnn(name: str, packed: bool) -> None:
    found = []
    for enabled in (True, False):
        layer, x = layer_and_input(name)
        lengths = [5, 4, 2] if layer.batch_first else [3, 2, 2, 1, 1]
        with cudnn.flags(enabled=enabled):
            given: Any = nn.utils.rnn.pack_padded_sequence(x, lengths, layer.batch_first) if packed else x
            output, state = layer(given)
            output = output.data if packed else output
            states = state if isinstance(state, tuple) else (state,)
            loss = output.square().sum() + sum(tensor.sum() for tensor in states)
        assert (type(output.grad_fn).__name__ == "CudnnRnnBackward0") == enabled
        loss.backward(retain_graph=True)
        loss.backward()
        found.append([output, *states, x.grad, *(tensor.grad for tensor in layer.parameters())])
    assert all(torch.equal(here, there) for here, there in zip(*found))


def test_float64_takes_cudnn_and_an_empty_batch_does_not() -> None:
    layer = nn.GRU(8, 4).cuda().double().eval()
    assert layer(torch.rand(3, 0, 8, device="cuda", dtype=torch.float64))[0].shape == (3, 0, 4)
    with pytest.raises(RuntimeError, match=NO_EVAL):
        layer(torch.rand(3, 5, 8, device="cuda", dtype=torch.float64))[0].sum().backward()


def test_autocast_runs_a_layer_in_half_precision() -> None:
    layer, x = layer_and_input("lstm")
    with torch.autocast("cuda"):
        output, (hidden, cell) = layer(x)
    assert output.dtype == hidden.dtype == cell.dtype == torch.float16
    output.float().sum().backward()
    assert layer.weight_ih_l0.grad.dtype == torch.float32
    assert x.grad.dtype == torch.float32


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_checkpointed_layer_has_its_gradients(dropout: float) -> None:
    from torch.utils.checkpoint import checkpoint

    found = []
    for use in (False, True):
        torch.manual_seed(0)
        layer = nn.LSTM(8, 4, num_layers=2, dropout=dropout).cuda()
        x = torch.rand(3, 5, 8, device="cuda", requires_grad=True)
        torch.manual_seed(1)
        output = checkpoint(lambda y, of=layer: of(y)[0], x, use_reentrant=False) if use else layer(x)[0]
        output.sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


def test_saved_tensors_may_be_moved_to_the_host() -> None:
    found = []
    for hooked in (False, True):
        layer, x = layer_and_input("gru")
        if hooked:
            with torch.autograd.graph.save_on_cpu():
                output = layer(x)[0]
        else:
            output = layer(x)[0]
        output.sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


def test_a_layer_keeps_no_memory_after_its_backward() -> None:
    layer, x = layer_and_input("lstm")
    layer(x)[0].sum().backward()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        layer(x)[0].sum().backward()
    assert torch.cuda.memory_allocated() == before


def test_other_dtypes_of_weights_are_refused() -> None:
    with pytest.raises((RuntimeError, ValueError), match="dtype"):
        nn.LSTM(8, 4).cuda()(torch.rand(3, 5, 8, device="cuda", dtype=torch.float64))


def test_cudnn_says_of_itself_what_a_cuda_build_says() -> None:
    assert cudnn.enabled
    assert cudnn.is_available()
    assert cudnn.version() >= 8500
    assert cudnn.is_acceptable(torch.ones(2, device="cuda"))
    for name in ("benchmark", "deterministic"):
        with cudnn.flags(enabled=True, **{name: True}):
            assert getattr(cudnn, name)
            assert torch.ones(2, device="cuda").sum() == 2
        assert not getattr(cudnn, name)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("benchmark", [False, True])
def test_what_asks_for_cudnn_runs_without_it(benchmark: bool) -> None:
    """Batch norm, CTC loss, sampling on a grid, convolutions and their second derivatives."""
    x = torch.rand(2, 3, 6, 6, device="cuda", requires_grad=True)
    with cudnn.flags(enabled=True, benchmark=benchmark, deterministic=benchmark):
        for training in (True, False):
            nn.BatchNorm2d(3).cuda().train(training)(x).sum().backward()
        grid = F.affine_grid(torch.eye(2, 3, device="cuda")[None].repeat(2, 1, 1), [2, 3, 6, 6], align_corners=False)
        F.grid_sample(x, grid, align_corners=False)
        scores = torch.rand(5, 2, 4, device="cuda", requires_grad=True).log_softmax(2)
        lengths = torch.tensor([5, 5], dtype=torch.int32), torch.tensor([2, 1], dtype=torch.int32)
        F.ctc_loss(scores, torch.tensor([1, 2, 3], dtype=torch.int32), *lengths).backward()
        for call in (
            nn.Conv2d(3, 4, 3).cuda(),
            nn.ConvTranspose2d(3, 4, 3).cuda(),
            nn.Conv2d(3, 6, 3, groups=3).cuda(),
        ):
            (first,) = torch.autograd.grad(call(x).square().sum(), [x], create_graph=True)
            first.square().sum().backward()
    assert x.grad.abs().sum() > 0
