"""What is known of the place at which a traceback is cut."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.crash import find_crash
from repros.diagnose.issue.last_calls import find_call


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("trainer/io.py:9 load: dcp.load(state, checkpoint_id=folder)", "checkpoint-plan"),
        (
            "torch/nn/parallel/distributed.py:840 __init__: _verify_param_shape_across_processes(group, params)",
            "wrap-ddp",
        ),
        ("run.py:3 main: ray.get(futures)", "ray-result"),
        ("run.py:3 main: model = accelerator.prepare(model)", "prepare"),
        ("run.py:3 main: loss.backward()", "backward"),
        ("run.py:3 main: batch = next(loader_iter)", "loader"),
        ("run.py:3 main: outputs = model(**inputs)", "forward"),
        ("run.py:3 main: dist.init_process_group('nccl')", "process-group"),
    ],
)
def test_a_call_has_a_place(frame: str, name: str) -> None:
    call = find_call(frame)
    assert call
    assert call.name == name


def test_another_call_has_no_place() -> None:
    assert find_call("run.py:3 main: print(total)") is None


@pytest.mark.parametrize(
    ("chain", "call"),
    [
        ("It goes main.py -> `Runner.fit(model)` -> `engine.step(batch)` and is then cut.", "engine.step(batch)"),
        ("It ends: cli/run.py line 8 -> app.wrap -> `shard_model(model)` -> torch. (The last line is cut.)",
         "shard_model(model)"),
        ("We go from A -> B.", ""),
    ],
)  # fmt: skip
def test_the_last_call_of_a_chain_that_a_sentence_tells(chain: str, call: str) -> None:
    text = f"# It crashes\n\n{chain}\n"
    crash = find_crash(read_issue(text), text)
    assert crash
    assert crash.told == call
