"""Programs that nobody here wrote run unmodified on simulated GPUs and print what they print on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.measure import simulate_table
from tools.measure.foreign_programs.numbers import compare, numbers
from tools.measure.foreign_programs.programs import Program, read_programs
from tools.measure.foreign_programs.simulated import SITE, error_lines, run

LINES = simulate_table.read_lines()
CAUSES = simulate_table.read_causes()
FEWEST = 113
SHORT = [program for program in read_programs() if program.tested_on_gpus]


def test_enough_programs_ran_on_the_devices() -> None:
    assert sum(simulate_table.kind(line) != "failed" for line in LINES) >= FEWEST


def test_each_result_that_shows_nothing_has_a_cause_and_each_cause_a_result() -> None:
    unexplained = {
        (line["source"], line["program"])
        for line in LINES
        if simulate_table.kind(line) in {"failed", "different"} or line["outcome"] == "differs on the CPU"
    }
    assert unexplained == set(CAUSES)


def test_results_belong_to_listed_programs() -> None:
    listed = {(program.source, program.name, program.gpu_command) for program in read_programs()}
    assert {(line["source"], line["program"], line["command"]) for line in LINES} <= listed


def test_the_pages_show_the_kept_results() -> None:
    page = simulate_table.EVERY_PROGRAM.read_text("utf-8")
    assert simulate_table.fill(page, simulate_table.every_program(LINES, CAUSES)) == page


@pytest.mark.long(keep=1)
@pytest.mark.slow
@pytest.mark.parametrize("program", SHORT, ids=[program.name for program in SHORT])
def test_a_short_one_prints_the_cpu_s_numbers(program: Program, current_python: Path, tmp_path: Path) -> None:
    line = run(program, current_python, tmp_path)
    assert (line["exit"], line["cpu_exit"], line["error"]) == (0, 0, "")
    assert line["on_device"] >= program.processes
    assert line["outcome"] in {"equal", "close", "no numbers"}, line


def test_a_program_that_looks_for_torch_before_it_imports_it_is_seeded(current_python: Path, tmp_path: Path) -> None:
    code = "import importlib.util; importlib.util.find_spec('torch'); import torch; print(torch.initial_seed())"
    variables = os.environ | {"PYTHONPATH": str(SITE), "FOREIGN_NOTES": str(tmp_path / "notes")}
    command = [str(current_python), "-c", code]
    assert subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout == "0\n"


def test_an_unbuffered_process_writes_a_line_at_once(tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONPATH": str(SITE), "FOREIGN_NOTES": str(tmp_path / "notes")}
    code = "import time; print('loss: 1.25', end=''); time.sleep(0.3); print()"
    lines = 'for line in 1 2; do python -u -c "$CODE" & done; wait'
    shell = ["sh", "-c", lines.replace("python", sys.executable)]
    said = subprocess.run(shell, env=variables | {"CODE": code}, check=True, capture_output=True, text=True).stdout
    assert said == "loss: 1.25\n" * 2


def test_numbers_are_found_by_the_word_before_them() -> None:
    text = "step 3: loss 4.2100, time 23.45ms, mfu -1.00%\n\x1b[31mlr=1e-05\x1b[0m torch 2.9.1 cuda:0 acc: 0.5 (0.25)\n"
    assert numbers(text) == {"loss": ["4.2100"], "lr": ["1e-05"], "acc": ["0.5", "0.25"]}


def test_what_a_progress_bar_overwrites_is_no_number() -> None:
    assert numbers("  0%| loss=1.5\r 50%| loss=1.25\r100%| 10/10 [00:01<00:00, 9.5it/s, loss=1.125]\n") == {
        "loss": ["1.125"]
    }


@pytest.mark.parametrize(
    ("here", "outcome", "difference"),
    [
        ("loss 1.50 1.25", "equal", 0.0),
        ("loss 1.50 1.25 gpu 0.5", "equal", 0.0),
        ("loss 1.50 1.2500003", "close", 2e-7),
        ("loss 1.25 1.50", "different", 0.25 / 1.5),
        ("loss 1.50", "different", float("inf")),
        ("loss nan 1.25", "different", float("inf")),
    ],
)
def test_numbers_are_compared(here: str, outcome: str, difference: float) -> None:
    result = compare(numbers(here), numbers("loss 1.50 1.25"), in_order=True)
    assert result.outcome == outcome
    assert result.difference == pytest.approx(difference)


def test_several_processes_may_print_in_any_order() -> None:
    assert compare(numbers("loss 1.25\nloss 1.5"), numbers("loss 1.5\nloss 1.25"), in_order=False).outcome == "equal"


def test_the_error_of_a_rank_is_named() -> None:
    said = "[rank1]: RuntimeError: no\nW1 warning\ntorch.distributed.elastic.multiprocessing.ChildFailedError: \n"
    assert error_lines(said) == ("RuntimeError: no",)
