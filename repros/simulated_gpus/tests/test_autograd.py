"""The thread of a backward pass: autograd's where a program can observe it, otherwise the caller's (faster)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


@pytest.fixture
def check(run_warm: Any) -> Any:
    """Run a check in a process of its own: hooks on saved tensors bind a process to autograd's threads."""

    def run(call: str) -> None:
        done = run_warm(
            f"from repros.simulated_gpus.tests import test_autograd as checks; checks.{call}; print('passed')"
        )
        assert done.stdout.endswith("passed\n"), done.stderr

    return run


class Seen(list[bool]):
    """For each call: whether it came in the thread that made this."""

    def __init__(self) -> None:
        self.home = threading.current_thread()

    def __call__(self, *given: Any) -> Any:
        self.append(threading.current_thread() is self.home)
        return given[0] if given else None


def function(x: Any, seen: Seen) -> Any:
    class Identity(torch.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return seen(gradient)

    return Identity.apply(x).sum()


def tensor_hook(x: Any, seen: Seen) -> Any:
    x.register_hook(seen)
    return x.sum()


def hook_within(x: Any, seen: Seen) -> Any:
    y = x * 2
    y.register_hook(seen)
    return y.sum()


def node_hooks(x: Any, seen: Seen) -> Any:
    y = (x * 2).sum()
    y.grad_fn.register_prehook(lambda gradients: seen() and None)
    y.grad_fn.register_hook(lambda inputs, outputs: seen() and None)
    return y


def accumulated(x: Any, seen: Seen) -> Any:
    x.register_post_accumulate_grad_hook(lambda parameter: seen() and None)
    return x.sum()


def saved(x: Any, seen: Seen) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, seen):
        return (x * x).sum()


def saved_by_one_node(x: Any, seen: Seen) -> Any:
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda tensor: tensor, seen)
    return y.sum()


def checkpoint(x: Any, seen: Seen) -> Any:
    from torch.utils.checkpoint import checkpoint

    def part(x: Any) -> Any:
        seen()
        return x.exp()

    y = checkpoint(part, x, use_reentrant=False).sum()
    seen.clear()
    return y


def is_called_in_a_thread_of_autograds(graph: Any) -> None:
    seen = Seen()
    x = torch.ones(3, device="cuda", requires_grad=True)
    graph(x, seen).backward()
    assert seen
    assert not any(seen)
    assert x.grad.device.type == "cuda"


AFTER_ACCUMULATION = pytest.param(
    "accumulated", marks=pytest.mark.skipif(TORCH < (2, 1), reason="torch 2.0 has no hooks after accumulation")
)
GRAPHS = ["function", "tensor_hook", "hook_within", "node_hooks", "saved", "saved_by_one_node", "checkpoint"]


@pytest.mark.parametrize("graph", [*GRAPHS, AFTER_ACCUMULATION])
def test_python_that_backward_calls_runs_in_a_thread_of_autograds(graph: str, check: Any) -> None:
    check(f"is_called_in_a_thread_of_autograds(checks.{graph})")


def a_mode_sees_the_calls_in_a_thread_of_autograds() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = Seen()

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen()
            return call(*args, **(kwargs or {}))

    y = torch.ones(3, device="cuda", requires_grad=True).exp().sum()
    with Mode():
        y.backward()
    assert not all(seen)


def a_profile_shows_backward_in_another_thread() -> None:
    from torch.autograd.profiler import profile

    y = torch.ones(3, device="cuda", requires_grad=True).exp().sum()
    with profile() as shown:
        torch.ones(1).neg()
        y.backward()
    threads = {event.name: event.thread for event in shown.function_events}
    assert threads["ExpBackward0"] != threads["aten::neg"]


def backward_under_autocast_has_the_type_of_autograds_thread() -> None:
    # Autocast is on in that thread, too: in 2.0 with the default type, in 2.13 with the caller's.
    gradients = []
    for hooks in ([], [lambda gradient: gradient]):
        x = torch.full((4, 4), 1 + 2**-9, device="cuda", requires_grad=True)
        for hook in hooks:
            x.register_hook(hook)
        y = (x @ x).sum()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y.backward()
        gradients.append(x.grad.unique().tolist())
    assert gradients[0] == gradients[1]


# Only the main thread flushes numbers that are too small for float32's exponent to zero.
FLUSHED = """
import torch
class Identity(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 1
    @staticmethod
    def backward(context, gradient):
        return gradient
same = {same}
x = torch.ones(1, device="cuda", requires_grad=True)
Identity.apply(x).backward()  # a thread begins with the state of the one that starts it
x.grad, y, gradient = None, same(x * 1e-20), torch.tensor([1e-20], device="cuda")
if not torch.set_flush_denormal(True):
    print("not here")
y.backward(gradient)
torch.set_flush_denormal(False)
print(x.grad.item() > 0)
"""


@pytest.mark.parametrize(("same", "printed"), [("lambda x: x", "False"), ("Identity.apply", "True")])
def test_a_pass_without_python_runs_in_its_callers_thread(same: str, printed: str, run_warm: Any) -> None:
    done = run_warm(FLUSHED.format(same=same))
    if "not here" in done.stdout:
        pytest.skip("this processor does not flush denormal numbers")
    assert done.stdout.split() == [printed], done.stderr


def gradients_of_two_threads_at_once_are_right() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def gradient(number: int) -> Any:
        x = torch.full((64, 64), float(number % 7), device="cuda", requires_grad=True)
        (x * x).sum().backward()
        return bool((x.grad == 2 * (number % 7)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(gradient, range(200)))


def a_root_may_be_a_leaf_or_need_no_gradient() -> None:
    # A leaf does not keep the node alive that accumulates its gradient; whoever walks the graph has to.
    x, other = torch.ones(3, device="cuda", requires_grad=True), torch.ones(3, device="cuda")
    for _ in range(100):
        (gradient,) = torch.autograd.grad([x], [x], [torch.full_like(x, 2)])
        assert gradient.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        torch.autograd.grad([x.sum(), other.sum()], x)


def a_model_on_two_devices_has_the_cpus_gradients() -> None:
    def gradients(first: str, second: str) -> Any:
        torch.manual_seed(0)
        near, far, x = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.randn(3, 4)
        near, far, x = near.to(first), far.to(second), x.to(first)
        for _ in range(2):
            across = far(near(x).relu().to(second)).exp()
            (across.sum().to(first) + near(x).sum()).backward()
        return [parameter.grad for part in (near, far) for parameter in part.parameters()]

    ours = gradients("cuda:0", "cuda:1")
    assert [str(tensor.device) for tensor in ours] == ["cuda:0"] * 2 + ["cuda:1"] * 2
    assert all(torch.equal(each.cpu(), host) for each, host in zip(ours, gradients("cpu", "cpu"), strict=True))
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("claim", [
    a_mode_sees_the_calls_in_a_thread_of_autograds,
    a_profile_shows_backward_in_another_thread,
    backward_under_autocast_has_the_type_of_autograds_thread,
    gradients_of_two_threads_at_once_are_right,
    a_root_may_be_a_leaf_or_need_no_gradient,
    a_model_on_two_devices_has_the_cpus_gradients,
])  # fmt: skip
def test_backward(claim: Any, check: Any) -> None:
    check(f"{claim.__name__}()")
