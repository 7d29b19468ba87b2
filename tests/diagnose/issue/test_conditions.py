"""The conditions of a reported run, the causes that they exclude, and the commands that fit it."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.conditions import Conditions, fit_command, read_conditions

TORCHRUN = "repros watch -- torchrun --nproc-per-node 2 train.py"
RANKS = "repros compare --ranks 1,2 -- python train.py"


def read(text: str) -> Conditions:
    """Return the conditions of a text below a title."""
    issue = f"# A question\n\n{text}\n"
    return read_conditions(read_issue(issue), issue)


@pytest.mark.parametrize(
    "text",
    [
        "With FSDP2 the step is slow.",
        "It hangs on 8 GPUs.",
        "rank 3 waits in a barrier",
        "It fails under tensor parallelism",
    ],
)
def test_several_ranks(text: str) -> None:
    assert read(text).has_ranks


@pytest.mark.parametrize("text", ["LoRA of rank 16 learns nothing", "On a single GPU it is NaN", "One epoch is slow"])
def test_no_ranks(text: str) -> None:
    assert not read(text).has_ranks


def test_a_run_on_one_gpu_has_no_cause_in_other_ranks() -> None:
    single = read("It hangs on a single GPU at the end of the epoch.")
    assert single.is_single
    assert single.excludes("one rank leaves the loop early")
    assert not single.excludes("a worker was killed")
    assert not read("It hangs with DDP on 2 GPUs, on one GPU it does not.").excludes("one rank leaves the loop early")


def test_a_run_without_workers_has_no_cause_in_them() -> None:
    assert read("With num_workers=0 it hangs as well.").excludes("a worker was killed")
    assert not read("With num_workers=4 it hangs, with num_workers=0 not.").excludes("a worker was killed")


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("Out of memory, but only after 4 to 6 steps", True),
        ("after a while the loss is NaN", True),
        ("The memory grows with every step", True),
        ("Out of memory at the first step", False),
    ],
)
def test_what_begins_late_prefers_causes_that_grow(text: str, late: bool) -> None:
    assert read(text).is_late is late
    assert read(text).favours("memory grows: losses are kept with their graphs") is late


def test_commands_have_the_launcher_and_the_program_of_the_report() -> None:
    accelerate = read("It hangs.\n\n```bash\naccelerate launch --num_processes 4 tools/sft.py --lr 1e-4\n```")
    assert fit_command(TORCHRUN, accelerate) == "repros watch -- accelerate launch --num-processes 2 tools/sft.py"
    workers = read("DataLoader workers freeze with num_workers=4.")
    assert fit_command(TORCHRUN, workers) == "repros watch -- python train.py"
    assert fit_command(RANKS, workers) == ""
    assert fit_command("repros train.log dumps/", workers) == ""
    ray = read("Ray's TorchTrainer hangs with FSDP on 4 GPUs.")
    assert fit_command(TORCHRUN, ray) == "repros watch -- python train.py"
    assert fit_command("repros watch -- python train.py", read("FSDP on 4 GPUs hangs")) == TORCHRUN
    assert fit_command(TORCHRUN, Conditions()) == TORCHRUN
