"""Optimizers on the device, fused ones included, and resuming them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


def train(optimizer: Any, device: Any, steps: Any = 4, **settings: Any) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3).to(device)
    made = optimizer(layer.parameters(), lr=0.1, **settings)
    for _ in range(steps):
        step(layer, made, device)
    return layer, made


def step(layer: Any, optimizer: Any, device: Any) -> None:
    optimizer.zero_grad()
    layer(torch.arange(8.0).reshape(2, 4).to(device)).pow(2).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adadelta"])
@pytest.mark.parametrize("foreach", [False, True])
def test_an_optimizer_does_what_it_does_on_the_cpu(name: Any, foreach: Any) -> None:
    optimizer = getattr(torch.optim, name)
    here, _ = train(optimizer, "cpu", foreach=foreach)
    there, _ = train(optimizer, "cuda", foreach=foreach)
    assert torch.equal(here.weight, there.weight.cpu())


@pytest.mark.parametrize("settings", [{}, {"amsgrad": True}, {"maximize": True}, {"weight_decay": 0.1}], ids=str)
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_fused_optimizer_does_what_a_plain_one_does(name: Any, settings: Any) -> None:
    optimizer = getattr(torch.optim, name)
    plain, _ = train(optimizer, "cpu", foreach=False, **settings)
    fused, made = train(optimizer, "cuda", fused=True, **settings)
    torch.testing.assert_close(fused.weight.cpu(), plain.weight, rtol=1e-5, atol=1e-6)
    assert made.state[fused.weight]["step"].device == torch.device("cuda:0")


@pytest.mark.skipif(TORCH < (2, 3), reason="fused SGD is from torch 2.3")
def test_fused_sgd() -> None:
    settings = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}
    plain, _ = train(torch.optim.SGD, "cpu", foreach=False, **settings)
    fused, _ = train(torch.optim.SGD, "cuda", fused=True, **settings)
    torch.testing.assert_close(fused.weight.cpu(), plain.weight, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(TORCH != (2, 0), reason="torch 2.0 only refuses on the CPU; later versions have fused CPU kernels")
def test_fused_is_still_refused_on_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="requires all the params to be CUDA, floating point Tensor"):
        torch.optim.AdamW(torch.nn.Linear(2, 2).parameters(), fused=True)


def resume(tmp_path: Path, where: Any) -> None:
    layer, made = train(torch.optim.AdamW, "cuda", fused=True)
    torch.save({"layer": layer.state_dict(), "optimizer": made.state_dict()}, tmp_path / "checkpoint.pt")
    checkpoint = torch.load(tmp_path / "checkpoint.pt", map_location=where)
    other, again = train(torch.optim.AdamW, "cuda", steps=0, fused=True)
    other.load_state_dict(checkpoint["layer"])
    again.load_state_dict(checkpoint["optimizer"])
    step(other, again, "cuda")
    step(layer, made, "cuda")
    assert torch.equal(layer.weight, other.weight)


def test_resuming_from_a_checkpoint_loaded_to_the_cpu(tmp_path: Path) -> None:
    if TORCH >= (2, 1):
        resume(tmp_path, "cpu")
        return
    with pytest.raises(
        RuntimeError, match=r"cuda:0 and cpu! \(when checking argument for argument state_steps in method"
    ):
        resume(tmp_path, "cpu")


def test_resuming_from_a_checkpoint_loaded_to_the_device(tmp_path: Path) -> None:
    resume(tmp_path, "cuda:0")
