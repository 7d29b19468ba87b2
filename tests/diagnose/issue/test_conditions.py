"""The conditions of a reported run, the causes that they exclude, and the commands that fit it."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.conditions import Conditions, contradicts, fit_command, read_conditions

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


def test_what_begins_at_once_has_no_cause_that_builds_up() -> None:
    cause = "the step diverged: the gradient norm grows for some steps before"
    assert read("The loss is NaN at the first step.").excludes(cause)
    assert not read("The loss is NaN after 300 steps, not at the first step.").excludes(cause)
    assert not read("The loss is NaN.").excludes(cause)


def test_a_run_in_bfloat16_has_no_overflow_of_float16() -> None:
    assert read("NaN with bf16=True").excludes("float16: values above 65,504 overflow")
    assert not read("NaN with bf16=True and with fp16").excludes("float16: values above 65,504 overflow")


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


@pytest.mark.parametrize(
    ("text", "cause", "lacks"),
    [
        ("I train with Adam.", "the adapter is not saved", True),
        ("I train a LoRA.", "the adapter is not saved", False),
        ("I train with Adam.", "gradient checkpointing cuts the gradient", True),
        ("I train with Adam.", "the optimizer has other parameters (made before LoRA, or .to())", False),
        ("I train with Adam.", "packing, truncation or padding has another default", False),
        ("I train with Adam.", "the rate is too high", False),
        ("I train Mixtral.", "the experts of two ranks differ", False),
        ("I train GPT-2.", "the experts of two ranks differ", True),
    ],
)
def test_a_cause_that_needs_what_the_report_never_names(text: str, cause: str, lacks: bool) -> None:
    assert read(text).lacks_needed(cause) is lacks


def test_numbers_contradict_causes() -> None:
    assert contradicts("a frozen layer gets no gradient", {"gradient-not-zero"})
    assert contradicts("the loss is 0 by definition; the gradient is not", {"gradient-zero"})
    assert not contradicts("a frozen layer gets no gradient", {"gradient-zero"})
    assert not contradicts("a frozen layer gets no gradient", set())


def test_memory_that_is_short_at_the_first_step_has_not_grown() -> None:
    grows = "The memory grows until processes are killed"
    assert read("It runs out of memory at the first step.").excludes(grows)
    assert not read("It runs out of memory after 300 steps.").excludes(grows)


def test_a_loop_of_zero_times_needs_no_deepspeed() -> None:
    conditions = Conditions(lacks=frozenset({"deepspeed"}))
    assert not conditions.lacks_needed("the loop ran zero times: the data set is empty")
    assert conditions.lacks_needed("ZeRO-3 has released the parameter")
