"""The call in which a rank waits for others, read from the functions on its stack."""

from __future__ import annotations

import pytest

from repros.diagnose.watch.inside.wait_calls import waiting_call, waiting_check

C10D = "/env/site-packages/torch/distributed/distributed_c10d.py"
SCRIPT = ("/home/user/train.py", "main")


@pytest.mark.parametrize(
    ("calls", "name"),
    [
        ([(C10D, "barrier"), SCRIPT], "barrier"),
        ([(C10D, "_wait"), (C10D, "all_reduce"), (C10D, "wrapper"), SCRIPT], "all_reduce"),
        ([("/env/site-packages/torch/autograd/graph.py", "_engine_run_backward"), SCRIPT], "backward"),
        ([("/env/site-packages/torch/distributed/rpc/api.py", "shutdown"), SCRIPT], None),
        ([SCRIPT, (C10D, "barrier")], None),
        ([], None),
    ],
)
def test_the_outermost_function_of_torch_waits(calls: list[tuple[str, str]], name: str | None) -> None:
    assert waiting_call(calls) == name


@pytest.mark.parametrize(
    ("functions", "check"),
    [
        ({"barrier", "save_checkpoint"}, "ranks_wait_apart_saving"),
        ({"_sync_ddp", "log"}, "ranks_wait_apart_logging"),
        ({"_sync_ddp"}, "ranks_wait_apart_epoch"),
        ({"all_reduce"}, "ranks_wait_apart"),
    ],
)
def test_lightning_s_functions_decide_the_check(functions: set[str], check: str) -> None:
    assert waiting_check(functions) == check
