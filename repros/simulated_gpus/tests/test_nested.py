"""Nested tensors, which an encoder in evaluation makes from a padding mask, are computed by the CPU's kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402 # torch is imported first, or all is skipped

pytestmark = pytest.mark.usefixtures("sim")


@pytest.fixture(autouse=True)
def ignore_the_prototype() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors is in prototype stage")
        yield


def some(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def nested(device: str, *, trained: bool = False) -> Any:
    return torch.nested.nested_tensor([some(2, 4), some(3, 4)], device=device, requires_grad=trained)


def padded(tensor: Any) -> Any:
    return torch.nested.to_padded_tensor(tensor, 0.0).cpu()


def test_an_encoder_leaves_padding_out() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = some(3, 5, 16), torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = padding[2, 4:] = True
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        found = encoder.cuda()(x.cuda(), src_key_padding_mask=padding.cuda())
    assert found.device == torch.device("cuda:0")
    torch.testing.assert_close(found.cpu(), expected)
    assert found[1, 3:].abs().sum() == 0  # what is padding is not computed


OPERATIONS: dict[str, Any] = {
    "product": lambda x: x * 2,
    "sum": lambda x: x + x,
    "relu": torch.relu,
    "linear": lambda x: torch.nn.functional.linear(x, some(3, 4).to(x.device)),
    "softmax": lambda x: torch.softmax(x, -1),
    "transposed": lambda x: x.transpose(1, 2).contiguous(),
    "copy": lambda x: x.clone(),
    "unbound": lambda x: torch.nested.nested_tensor([tensor + 1 for tensor in x.unbind()], device=x.device),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_the_cpu_s_results(name: str) -> None:
    expected, found = (OPERATIONS[name](nested(device)) for device in ("cpu", "cuda"))
    assert found.is_nested
    assert found.device.type == "cuda"
    assert torch.equal(padded(found), padded(expected))


def test_changes_in_place_reach_the_parts() -> None:
    x = nested("cuda")
    first = x.unbind()[0]
    x.mul_(2)
    assert torch.equal(first.cpu(), some(2, 4) * 2)


@pytest.mark.skipif(TORCH < (2, 4), reason="before 2.4 it is made of a list alone")
def test_a_strided_one_is_a_view_of_what_it_is_made_of() -> None:
    x = some(3, 4, 5).cuda()
    view = torch.nested.as_nested_tensor(x)
    assert view.device == x.device
    assert torch.equal(padded(view), x.cpu())
    assert view._base is x
    with torch.inference_mode():
        assert view.transpose(1, 2).is_nested


def test_gradients_come_back() -> None:
    gradients = []
    for device in ("cpu", "cuda"):
        x = nested(device, trained=True)
        torch.nested.to_padded_tensor(x * x, 0.0).sum().backward()
        assert x.grad.device.type == device
        gradients.append(padded(x.grad))
    assert torch.equal(*gradients)


def test_it_moves_to_the_host_and_between_devices() -> None:
    x = nested("cpu")
    there = x.to("cuda:1")
    assert there.device == torch.device("cuda:1")
    assert torch.equal(padded(there.cpu()), padded(x))
    assert there.cpu().device.type == "cpu"


@pytest.mark.skipif(TORCH < (2, 2), reason="jagged tensors are from 2.1 on, and complete from 2.2")
def test_a_jagged_tensor_is_computed_by_its_values() -> None:
    x = torch.nested.nested_tensor([some(2, 4), some(3, 4)], device="cuda", layout=torch.jagged)
    assert torch.equal((x * 2).values().cpu(), torch.cat([some(2, 4), some(3, 4)]) * 2)
