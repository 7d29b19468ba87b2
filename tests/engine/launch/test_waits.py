"""Which stacks show that a process waits for other ranks, and for nothing else."""

from __future__ import annotations

import pytest

from repros.engine.launch.stacks import StackFrame, StackTrace
from repros.engine.launch.waits import call_that_waits

PYTHON, SITE = "/usr/lib/python3.11", "/env/lib/python3.11/site-packages"
SCRIPT = f"{SITE}/../user.py main"
BARRIER = f"{SITE}/torch/distributed/distributed_c10d.py barrier"
MONITOR = [f"{PYTHON}/threading.py wait", f"{SITE}/tqdm/_monitor.py run", f"{PYTHON}/threading.py _bootstrap"]
FEED = [f"{PYTHON}/threading.py wait", f"{PYTHON}/multiprocessing/queues.py _feed", f"{PYTHON}/threading.py run"]


def stack(*calls: str) -> StackTrace:
    return tuple(StackFrame(call.rpartition(" ")[0], "1", call.rpartition(" ")[2]) for call in calls)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (BARRIER, "barrier"),
        (f"{SITE}/torch/distributed/distributed_c10d.py destroy_process_group", "destroy_process_group"),
        (f"{SITE}/torch/distributed/utils.py _sync_module_states", "_sync_module_states"),
        (f"{SITE}/torch/nn/parallel/distributed.py forward", "forward"),
        (f"{SITE}/torch/autograd/__init__.py backward", "backward"),
        (f"{SITE}/torch/autograd/graph.py _engine_run_backward", "_engine_run_backward"),
        # What ends by itself, or is not known to wait for ranks.
        (f"{SITE}/torch/distributed/distributed_c10d.py monitored_barrier", None),
        (f"{SITE}/torch/autograd/graph.py register_hook", None),
        (f"{SITE}/torch/distributed/checkpoint/filesystem.py write_data", None),
        (f"{SITE}/torch/distributed/rpc/api.py shutdown", None),
        (f"{SITE}/my_torch/distributed_c10d.py barrier", None),
        (f"{PYTHON}/threading.py wait", None),
        (f"{PYTHON}/selectors.py select", None),
        (SCRIPT, None),
    ],
)
def test_the_innermost_call_decides(call: str, name: str | None) -> None:
    assert call_that_waits([stack(call, SCRIPT)], is_rank=True, is_finished=False) == name
    assert call_that_waits([stack(SCRIPT, call)], is_rank=True, is_finished=False) is None


def test_a_functional_collective_is_called_through_torch_ops() -> None:
    main = stack(f"{SITE}/torch/_ops.py __call__", f"{SITE}/torch/distributed/_functional_collectives.py wait_tensor")
    assert call_that_waits([main], is_rank=True, is_finished=False) == "wait_tensor"


@pytest.mark.parametrize(
    ("other_thread", "waits"),
    [
        ([], True),  # a thread of C++ that has called Python before
        (MONITOR, True),
        (FEED, True),
        ([BARRIER, SCRIPT], True),
        ([SCRIPT], False),
        ([f"{PYTHON}/threading.py wait", SCRIPT], False),
        ([f"{PYTHON}/threading.py wait", f"{PYTHON}/threading.py run"], False),  # a threading.Timer
        ([f"{PYTHON}/concurrent/futures/thread.py _worker", f"{PYTHON}/threading.py run"], False),
    ],
)
def test_another_thread_must_not_be_able_to_go_on(other_thread: list[str], waits: bool) -> None:
    found = call_that_waits([stack(*other_thread), stack(BARRIER, SCRIPT)], is_rank=True, is_finished=False)
    assert (found is not None) == waits


def test_a_launcher_waits_for_its_ranks_and_a_rank_does_not() -> None:
    main = stack(
        f"{PYTHON}/selectors.py select",
        f"{PYTHON}/multiprocessing/connection.py wait",
        f"{SITE}/torch/multiprocessing/spawn.py join",
        SCRIPT,
    )
    assert call_that_waits([main], is_rank=False, is_finished=False) == "join"
    assert call_that_waits([main], is_rank=True, is_finished=False) is None
    assert call_that_waits([stack(BARRIER)], is_rank=False, is_finished=False) is None


def test_a_rank_that_has_finished_may_wait_in_its_exit() -> None:
    exits = stack(f"{PYTHON}/multiprocessing/util.py _exit_function")
    assert call_that_waits([exits], is_rank=True, is_finished=True) == "_exit_function"
    assert call_that_waits([exits], is_rank=True, is_finished=False) is None
    assert call_that_waits([()], is_rank=True, is_finished=True) == "the interpreter's exit"
    assert call_that_waits([()], is_rank=True, is_finished=False) is None
    assert call_that_waits([stack(SCRIPT)], is_rank=True, is_finished=True) is None


def test_a_process_that_wrote_no_stacks_does_not_wait() -> None:
    assert call_that_waits([], is_rank=True, is_finished=True) is None
