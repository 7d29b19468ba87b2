"""`torch.cuda.set_sync_debug_mode` finds where the host waits for a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")
F = torch.nn.functional


@pytest.fixture(autouse=True)
def silent_again() -> Iterator[None]:
    yield
    torch.cuda.set_sync_debug_mode("default")


def set_mode(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype feature")
        torch.cuda.set_sync_debug_mode(mode)


def on_gpu() -> Any:
    x, index = torch.rand(4, device="cuda"), torch.tensor([0, 2], device="cuda")
    return x, index, torch.tensor([True, False, True, False], device="cuda"), torch.tensor(2.0, device="cuda")


def assign(x: Any, index: Any, value: Any) -> None:
    x[index] = value


WAIT: dict[str, Any] = {
    "item": lambda x, i, m, y: y.item(),
    "if": lambda x, i, m, y: 1 if y else 2,
    "to the host": lambda x, i, m, y: x.cpu(),
    "from the host": lambda x, i, m, y: torch.ones(2).to("cuda"),
    "from a list": lambda x, i, m, y: torch.tensor([1.0], device="cuda"),
    "nonzero": lambda x, i, m, y: x.nonzero(),
    "mask": lambda x, i, m, y: x[m],
    "index of the host": lambda x, i, m, y: x[i.cpu()],
    "assign through a mask": lambda x, i, m, y: assign(x, m, y),
    "masked_select": lambda x, i, m, y: x.masked_select(m),
    "unique": lambda x, i, m, y: x.unique(),
    "equal": lambda x, i, m, y: torch.equal(x, x + 1),
    "allclose": lambda x, i, m, y: torch.allclose(x, x),
    "one_hot": lambda x, i, m, y: F.one_hot(i),
    "repeat_interleave": lambda x, i, m, y: torch.repeat_interleave(x, i[:1] + 2),
    "stream": lambda x, i, m, y: torch.cuda.current_stream().synchronize(),
}
RUN_ON: dict[str, Any] = {
    "arithmetic": lambda x, i, m, y: (x * y + 1).sum(),
    "new": lambda x, i, m, y: torch.zeros(3, device="cuda").fill_(2),
    "index": lambda x, i, m, y: x[i],
    "assign": lambda x, i, m, y: assign(x, i, y),
    "assign a number through a mask": lambda x, i, m, y: assign(x, m, 1.0),
    "pinned": lambda x, i, m, y: torch.ones(2).pin_memory().to("cuda", non_blocking=True),
    "between GPUs": lambda x, i, m, y: x.to("cuda:1"),
    "one_hot of known size": lambda x, i, m, y: F.one_hot(i, num_classes=4),
    "repeat_interleave of known size": lambda x, i, m, y: torch.repeat_interleave(x, 2, output_size=8),
    "any": lambda x, i, m, y: x.any(),
    "randperm": lambda x, i, m, y: torch.randperm(100, device="cuda"),
}


@pytest.mark.parametrize("name", WAIT)
def test_a_call_that_waits_is_found(name: str) -> None:
    given = on_gpu()
    set_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        WAIT[name](*given)
    set_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        WAIT[name](*given)
    set_mode("default")
    WAIT[name](*given)


@pytest.mark.parametrize("name", RUN_ON)
def test_a_call_that_runs_on_is_silent(name: str) -> None:
    given = on_gpu()
    set_mode("error")
    RUN_ON[name](*given)


def test_pytorch_says_that_it_does_not_find_all() -> None:
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
