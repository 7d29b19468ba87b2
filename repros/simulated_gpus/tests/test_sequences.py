"""Sequences of calls: the host alias that a tensor keeps from one call is right for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


def swap_memory(x: Any, y: Any) -> Any:
    x.data = y.clone()
    return x


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "add in place": lambda x, y: x.add_(y),
    "add transposed": lambda x, y: x + y.t(),
    "multiply in place": lambda x, y: x.mul_(y),
    "multiply in place with a number of the host": lambda x, _y: x.mul_(torch.tensor(2.0, device="cpu")),
    "fill": lambda x, _y: x.fill_(2),
    "zero a row": lambda x, _y: (x[1].zero_(), x)[1],
    "softmax": lambda x, _y: torch.softmax(x, 0),
    "log_softmax in another type": lambda x, _y: torch.log_softmax(x, 1, dtype=torch.float64).float(),
    "transpose in place": lambda x, _y: x.t_(),
    "view": lambda x, _y: x.view(-1).view(3, 3) if x.is_contiguous() else x,
    "product": lambda x, y: x.mm(y).tanh(),
    "copy": lambda x, y: x.copy_(y),
    "swap the memory": swap_memory,
    "grow and shrink": lambda x, _y: (x.resize_(9, 9), x.resize_(3, 3), x)[2],
    "in float16": lambda x, y: x.half().add_(y.half()).float(),
    "mean": lambda x, _y: x.mean(0, keepdim=True).expand(3, 3).contiguous(),
}
PLACES = st.integers(0, 2)


def results(device: str, steps: list[tuple[str, int, int, int]]) -> list[tuple[Any, ...]]:
    """Run the steps on three tensors, each of which replaces one of them.

    Returns what was refused, and everything visible of the three.
    """
    pool = [torch.arange(9.0, device="cpu").view(3, 3).sub(number).div(4).to(device) for number in range(3)]
    refused = []
    for name, first, second, place in steps:
        try:
            with torch.no_grad():
                pool[place] = CALLS[name](pool[first], pool[second])
        except RuntimeError as error:
            refused.append((name, str(error).partition("\n")[0]))
    return refused + [
        (tensor.tolist(), tensor.stride(), tensor._version, str(tensor.dtype), tensor.untyped_storage().nbytes())
        for tensor in pool
    ]


# `add_` refuses a view of the same memory in another order.
@example([("view", 0, 0, 1), ("transpose in place", 0, 0, 0), ("add in place", 0, 1, 0)])
@given(st.lists(st.tuples(st.sampled_from(sorted(CALLS)), PLACES, PLACES, PLACES), max_size=12))
@settings(deadline=None, max_examples=150)
def test_calls_one_after_another_have_the_cpus_results(steps: list[tuple[str, int, int, int]]) -> None:
    assert repr(results("cuda", steps)) == repr(results("cpu", steps))


def test_memory_is_free_when_its_results_are_gone() -> None:
    x = torch.ones(1000, 1000, device="cuda")
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        y = (x @ x).t()
        y.add_(x)
        torch.softmax(y.relu(), 0).sum().item()
    del y
    assert torch.cuda.memory_allocated() == before
