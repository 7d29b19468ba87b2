"""CUDA graphs: captured calls are replayed on the same memory, and what a capture does not permit is refused."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")
F = torch.nn.functional

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"
ENDED = "CUDA error: operation failed due to a previous error during capture"


@pytest.fixture(autouse=True)
def default_stream_again() -> Iterator[None]:
    """A capture whose end raises leaves its stream current, before torch 2.15."""
    yield
    torch.cuda.set_stream(torch.cuda.default_stream())


def captured(call: Any) -> tuple[Any, Any]:
    """Return a graph of a call, and the call's result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def make_net() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    ).cuda()


def test_a_replay_reads_what_a_static_input_holds_then() -> None:
    x = torch.zeros(3, device="cuda")
    graph, y = captured(lambda: torch.relu(x * 2 + 1))
    x.copy_(torch.tensor([1.0, -2.0, 3.0]))
    graph.replay()
    assert y.tolist() == [3, 0, 7]


def test_a_new_input_tensor_changes_nothing() -> None:
    x = torch.ones(3, device="cuda")
    graph, y = captured(lambda: x * 2)
    graph.replay()
    x = torch.full((3,), 5.0, device="cuda")
    graph.replay()
    assert y.tolist() == [2, 2, 2]


def test_the_next_replay_overwrites_an_output() -> None:
    x = torch.ones(3, device="cuda")
    graph, y = captured(lambda: x * 2)
    graph.replay()
    kept, copied = [y], [y.clone()]
    x.fill_(4)
    graph.replay()
    assert kept[0].tolist() == [8, 8, 8]
    assert copied[0].tolist() == [2, 2, 2]


def test_a_capture_runs_nothing() -> None:
    weight = torch.ones(3, device="cuda")
    graph, y = captured(lambda: weight.add_(1) * 2)
    assert weight.tolist() == [1, 1, 1]
    assert y.isnan().all()
    graph.replay()
    graph.replay()
    assert (weight.tolist(), y.tolist()) == ([3, 3, 3], [6, 6, 6])


def test_is_current_stream_capturing_tells_where_it_is_asked() -> None:
    _, is_capturing = captured(lambda: (torch.ones(1, device="cuda"), torch.cuda.is_current_stream_capturing())[1])
    assert is_capturing
    assert not torch.cuda.is_current_stream_capturing()


def test_each_replay_draws_new_numbers() -> None:
    torch.cuda.manual_seed(3)
    graph, drawn = captured(lambda: torch.rand(4, device="cuda"))
    graph.replay()
    first = drawn.clone()
    graph.replay()
    assert not torch.equal(first, drawn)
    torch.cuda.manual_seed(3)
    assert torch.equal(torch.rand(4, device="cuda"), first)  # the capture itself has drawn nothing


def test_the_whole_network_is_captured() -> None:
    """The example of PyTorch's notes on CUDA graphs, and the same steps without a graph."""
    net = make_net()
    data, target = torch.randn(5, 16, 4).cuda(), torch.randn(5, 16, 2).cuda()
    x, y = torch.zeros_like(data[0]), torch.zeros_like(target[0])
    plain = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    optimizer.zero_grad(set_to_none=True)

    def step() -> Any:
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for parameter in net.parameters():  # the momentum must be there before the capture, as it is after a warm-up
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    graph, loss = captured(step)
    losses = []
    for each, wanted in zip(data, target):
        x.copy_(each)
        y.copy_(wanted)
        graph.replay()
        losses.append(loss.item())

    optimizer, expected = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), []
    for each, wanted in zip(data, target):
        optimizer.zero_grad()
        loss = F.mse_loss(plain(each), wanted)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-5)
    assert len(set(losses)) == len(losses)
    for mine, theirs in zip([*net.parameters(), *net.buffers()], [*plain.parameters(), *plain.buffers()]):
        torch.testing.assert_close(mine, theirs)


def test_graphed_callables_train_like_the_module() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).cuda()
    plain = copy.deepcopy(net)
    graphed = torch.cuda.make_graphed_callables(net, (torch.randn(16, 4, device="cuda"),))
    for _ in range(2):
        x = torch.randn(16, 4, device="cuda")
        for module in (graphed, plain):
            module.zero_grad()
            module(x).square().sum().backward()
        for mine, theirs in zip(net.parameters(), plain.parameters()):
            torch.testing.assert_close(mine.grad, theirs.grad)


WAIT: dict[str, Any] = {
    "item": lambda x: x.sum().item(),
    "cpu": lambda x: x.cpu(),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "from the host": lambda x: torch.tensor([1.0], device="cuda"),
    "synchronize": lambda x: torch.cuda.synchronize(),
    "stream": lambda x: torch.cuda.current_stream().synchronize(),
}


@pytest.mark.parametrize("call", WAIT)
def test_a_call_that_waits_for_the_gpu_ends_the_capture(call: str) -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError) as ended:
        captured(lambda: WAIT[call](x))
    assert str(ended.value).startswith(ENDED)
    assert str(ended.value.__context__).startswith(NOT_PERMITTED)
    assert WAIT["item"](x) == 3  # and the process goes on


def test_the_default_stream_is_refused() -> None:
    with pytest.raises(RuntimeError, match="CUDA graphs must be captured on a non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()


def test_a_generator_has_to_be_registered() -> None:
    generator = torch.Generator("cuda")
    with pytest.raises(RuntimeError, match="Attempt to increase offset for a CUDA generator not in capture mode"):
        captured(lambda: torch.rand(2, device="cuda", generator=generator))


def test_a_seed_cannot_be_set_in_a_capture() -> None:
    with pytest.raises(
        RuntimeError, match=r"Cannot call CUDAGeneratorImpl::set_current_seed during CUDA graph capture"
    ):
        captured(lambda: torch.cuda.manual_seed(1))


def test_a_graph_is_captured_before_it_is_replayed_and_once() -> None:
    graph = torch.cuda.CUDAGraph()
    # torch.cuda.graphs.CUDAGraph.replay of later releases makes the executable graph first.
    words = "replay without a preceding successful capture|must have been called before calling instantiate"
    with pytest.raises(RuntimeError, match=words):
        graph.replay()
    graph, _ = captured(lambda: torch.ones(2, device="cuda") * 2)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(graph):
        pass
    graph.reset()
    with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
        torch.ones(2, device="cuda").mul(2)
    graph.replay()


def test_a_graph_keeps_its_memory_until_it_is_reset() -> None:
    gc.collect()  # what other tests have left in cycles is freed now, and not in between
    before = torch.cuda.memory_allocated()
    graph, y = captured(lambda: torch.ones(1 << 20, device="cuda") * 2)
    del y
    graph.replay()
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    peak = torch.cuda.max_memory_allocated()
    graph.replay()
    assert torch.cuda.max_memory_allocated() == peak  # a replay allocates nothing
    graph.reset()
    assert torch.cuda.memory_allocated() == before


CPU_RANDOM = """
import torch
graph = torch.cuda.CUDAGraph()
own = torch.Generator("cuda") if hasattr(graph, "register_generator_state") else None  # from 2.4 on

def draw():
    return torch.rand(2, device="cuda"), torch.rand(2, device="cuda", generator=own)

def seed():
    torch.manual_seed(0)
    if own is not None:
        own.manual_seed(1)

seed()
eager = [[tensor.tolist() for tensor in draw()] for _ in range(3)]
seed()
if own is not None:
    graph.register_generator_state(own)
with torch.cuda.graph(graph):
    drawn = draw()
replayed = []
for _ in range(3):
    graph.replay()
    replayed.append([tensor.tolist() for tensor in drawn])
print(replayed == eager)
"""


def test_a_capture_draws_nothing_of_the_cpu_s_numbers_either(run_python: Any) -> None:
    ended = run_python(CPU_RANDOM, REPROS_SIM_RANDOM="cpu")
    assert ended.stdout == "True\n", ended.stderr
