"""Quantized tensors on a device: CUDA makes, reads, copies and views them, and computes little with them."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

VALUES = [-1.04, -0.12, 0.0, 0.5, 0.87, 1.3]


def quantized(device: str, *, per_channel: bool = False) -> Any:
    given = torch.tensor(VALUES, device=device).reshape(2, 3)
    if per_channel:
        scales = torch.tensor([0.1, 0.2], device=device)
        return torch.quantize_per_channel(given, scales, torch.tensor([0, 1], device=device), 0, torch.qint8)
    return torch.quantize_per_tensor(given, 0.1, 2, torch.quint8)


BOTH = pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])


@BOTH
def test_it_has_the_cpu_s_integers_and_parameters(per_channel: bool) -> None:
    q, cpu = quantized("cuda", per_channel=per_channel), quantized("cpu", per_channel=per_channel)
    assert (q.device, q.is_quantized, q.dtype, q.qscheme()) == (torch.device("cuda:0"), True, cpu.dtype, cpu.qscheme())
    assert q.int_repr().device == q.dequantize().device == q.device
    assert torch.equal(q.int_repr().cpu(), cpu.int_repr())
    assert torch.equal(q.dequantize().cpu(), cpu.dequantize())
    if per_channel:
        assert q.q_per_channel_scales().device == q.q_per_channel_zero_points().device == q.device
        assert q.q_per_channel_scales().tolist() == cpu.q_per_channel_scales().tolist()
        assert q.q_per_channel_axis() == 0
    else:
        assert (q.q_scale(), q.q_zero_point()) == (0.1, 2)


@BOTH
def test_it_goes_to_the_device_and_back(per_channel: bool) -> None:
    cpu = quantized("cpu", per_channel=per_channel)
    there = cpu.cuda()
    assert there.is_cuda
    assert torch.equal(there.int_repr().cpu(), cpu.int_repr())
    assert torch.equal(there.cpu(), cpu)
    assert torch.equal(there.dequantize().cpu(), cpu.dequantize())


def test_views_share_its_memory() -> None:
    q = quantized("cuda")
    row = q[1]
    assert (row.q_scale(), row.is_quantized) == (0.1, True)
    row.copy_(q[0].clone())
    assert torch.equal(q[1].int_repr(), q[0].int_repr())
    assert q.view(6).shape == q.flatten().shape == (6,)
    assert q.t().stride() == (1, 3)
    assert q.flip(0).dequantize().tolist() == q.dequantize().flip(0).tolist()


def test_it_is_assigned_numbers() -> None:
    q = quantized("cuda")
    q[0] = torch.tensor([0.31, 0.52, 0.77], device="cuda")
    assert q[0].int_repr().tolist() == [5, 7, 10]
    assert q[0, 0].item() == pytest.approx(0.3)
    q.fill_(1)
    assert q.int_repr().unique().tolist() == [12]
    with pytest.raises(RuntimeError, match="expects a quantized and float tensors to be on the same device"):
        q[0] = torch.zeros(3)
    with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-quantized Tensor is not allowed"):
        torch.empty(2, 3, device="cuda").copy_(q)


def test_a_copy_takes_the_parameters_of_what_it_copies() -> None:
    q, other = quantized("cuda"), torch.quantize_per_tensor(torch.zeros(2, 3, device="cuda"), 0.5, 0, torch.quint8)
    other.copy_(q)
    assert (other.q_scale(), other.q_zero_point()) == (0.1, 2)
    assert torch.equal(other.dequantize(), q.dequantize())


def test_it_is_saved_and_copied_whole() -> None:
    q = quantized("cuda")
    file = io.BytesIO()
    torch.save(q, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for same in (loaded, copy.deepcopy(q)):
        assert (same.device, same.q_scale()) == (q.device, q.q_scale())
        assert torch.equal(same.int_repr(), q.int_repr())
    assert "quantization_scheme=torch.per_tensor_affine" in repr(q)


@pytest.mark.parametrize("call", [lambda q: q + q, torch.sigmoid])
def test_what_cuda_lacks_is_refused_in_its_words(call: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"Could not run '\S+' with arguments from the 'QuantizedCUDA'"):
        call(quantized("cuda"))


def test_half_is_not_quantized() -> None:
    with pytest.raises(RuntimeError, match="Quantize only works on Float Tensor, got Half"):
        torch.quantize_per_tensor(torch.ones(2, device="cuda").half(), 0.1, 0, torch.qint8)
