"""`torch.cuda.comm` refuses what CUDA refuses, in its words (torch/csrc/cuda/comm.cpp)."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
comm = pytest.importorskip("torch.cuda.comm", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


def ones(*shape: int, device: str = "cuda") -> Any:
    return torch.ones(shape, device=device)


REFUSED = {
    "a negative device": (lambda: comm.broadcast(ones(2), (-1, 0)), "Expected non-negative device index, but got -1"),
    "an output elsewhere": (
        lambda: comm.broadcast(ones(2), out=(ones(2), ones(2, device="cpu"))),
        "Expected all output tensors to be CUDA tensors, but output tensor at index 1 has device 'cpu'",
    ),
    "an output of another shape": (
        lambda: comm.broadcast(ones(2), out=(ones(1),)),
        r"source tensor \[2\], but output tensor at index 0 has shape \[1\]",
    ),
    "inputs elsewhere": (
        lambda: comm.broadcast_coalesced([ones(2, device="cuda:1")], [0, 1]),
        r"All tensors must be on devices\[0\]: 0",
    ),
    "no device": (lambda: comm.scatter(ones(2), ()), "Expected at least one device to scatter to"),
    "sizes of another number": (
        lambda: comm.scatter(ones(2), (0, 1), chunk_sizes=(2,)),
        r"same length, but got len\(devices\) = 2 and len\(chunk_sizes\) = 1",
    ),
    "a stream of another device": (
        lambda: comm.scatter(ones(2), (0, 1), streams=[torch.cuda.Stream(1), None]),
        r"stream at index 0 \(was 1\) to match the device supplied at that index \(expected 0\)",
    ),
    "outputs that are too small": (
        lambda: comm.scatter(ones(3), out=(ones(1), ones(1))),
        "along scatter dim 0 does not match the source tensor size at dim 0. Expected 3, but got total size 2",
    ),
    "a dimension that is not there": (lambda: comm.scatter(ones(3), out=(ones(3),), dim=2), "Dimension out of range"),
    "nothing": (lambda: comm.gather([]), "Expected at least one tensor to gather from"),
    "an input of the CPU": (
        lambda: comm.gather([ones(2, device="cpu")]),
        "Expected all input tensors to be CUDA tensors, but tensor at index 0 has device cpu",
    ),
    "inputs of other shapes": (
        lambda: comm.gather([ones(2, 2), ones(2, 3)]),
        r"Input tensor at index 1 has invalid shape \[2, 3\], but expected \[2, 2\]",
    ),
    "an output that is too small": (
        lambda: comm.gather([ones(2), ones(2, device="cuda:1")], out=ones(3)),
        r"Expected out tensor to have shape \[4\], but got \[3\]",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_a_call_is_refused(call: Any, words: str) -> None:
    with pytest.raises((RuntimeError, IndexError), match=words):
        call()


def test_parts_come_back_whole() -> None:
    whole = torch.arange(10.0, device="cuda").view(5, 2)
    parts = comm.scatter(whole, (0, 1), chunk_sizes=(2, 3), dim=-2)
    assert [str(part.device) for part in parts] == ["cuda:0", "cuda:1"]
    assert torch.equal(comm.gather(parts, dim=-2), whole)
    out = (torch.empty(2, 2, device="cuda"), torch.empty(3, 2, device="cuda:1"))
    assert torch.equal(comm.gather(comm.scatter(whole, out=out), destination="cpu"), whole.cpu())
