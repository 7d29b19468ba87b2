"""Three programs as a new user has them, each healthy and not, under the launchers of their libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent / "toys/new_user"
TORCHRUN = ("torchrun", "--nproc-per-node", "2")
BYPASSED = """\
        check     gradients_differ_bypassed, rank 0, step 1
        seen      norm of {names[0]}: rank 0 has X, rank 1 has X
        seen      norm of {names[1]}: rank 0 has X, rank 1 has X
        seen      norm of {names[2]}: rank 0 has X, rank 1 has X
        seen      norm of {names[3]}: rank 0 has X, rank 1 has X
        at        {place}
"""
"""The lines of the finding below its sentence."""
IDS = r"^ +(RPR-\d{4}  \w+) \("
"""The failure that a line of a finding names, and how certain it is."""


def watch(python: Path, *command: str) -> tuple[int, str]:
    """Run a command with the programs of an environment; return its exit code and what the watch has said."""
    environ = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "100"}
    words = [sys.executable, "-m", "repros", "watch", "--strict", "--python", str(python), "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, env=environ)
    said = "repros: " + done.stderr.partition("repros: ")[2]  # what comes before is the launcher's
    return done.returncode, re.sub(r"has [\d.e-]+", "has X", said.replace(f"{PROGRAMS}{os.sep}", ""))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "launcher",
    [
        TORCHRUN,
        ("accelerate", "launch", "--multi_gpu", "--num_processes=2"),
        ("python", "-m", "torch.distributed.run", "--nproc-per-node=2"),
    ],
    ids=["torchrun", "accelerate launch", "torch.distributed.run"],
)
def test_a_plain_loop_that_calls_ddp_module(launcher: tuple[str, ...], current_python: Path) -> None:
    code, said = watch(current_python, *launcher, str(PROGRAMS / "plain.py"), "bypassed")
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    assert (code, re.findall(IDS, said, re.MULTILINE)) == (3, ["RPR-0017  likely"])
    assert BYPASSED.format(names=names, place="plain.py:27 main") in said
    assert re.search(r"\b1 .*\b3 .*: RPR-0017$", said.splitlines()[-1]), said


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("strategy", ["ddp", "ddp_fork", "ddp_spawn"])
def test_a_student_in_fabric_that_is_called_past_its_wrapper(strategy: str, current_python: Path) -> None:
    code, said = watch(current_python, "python", str(PROGRAMS / "distil.py"), "bypassed", strategy)
    names = [f"student.{name}" for name in ("0.weight", "0.bias", "2.weight", "2.bias")]
    assert (code, re.findall(IDS, said, re.MULTILINE)) == (3, ["RPR-0005  likely", "RPR-0017  possible"])
    assert BYPASSED.format(names=names, place="distil.py:42 train") in said
    assert said.splitlines()[-1].endswith(": RPR-0005"), said


def test_a_gan_whose_critic_is_trained_past_its_wrapper(current_python: Path) -> None:
    code, said = watch(current_python, *TORCHRUN, str(PROGRAMS / "gan.py"), "bypassed")
    assert code == 3
    assert ("6 of 6" in said, re.findall(IDS, said, re.MULTILINE)) == (True, ["RPR-0017  likely"]), said
    named = re.findall(r"(?:norm|sum) of (\S+): rank 0 has ", said)
    assert len({*named} & {f"{layer}.{part}" for layer in (0, 1, 3) for part in ("weight", "bias")}) == 5, said
    assert "\n        at        gan.py:44 main\n" in said


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "command",
    [
        (*TORCHRUN, "plain.py", "called"),
        ("python", "distil.py", "called", "ddp"),
        ("python", "gan.py", "called"),
        (*TORCHRUN, "gan.py", "called"),
    ],
    ids=" ".join,
)
def test_their_healthy_twins_give_no_finding(command: tuple[str, ...], current_python: Path) -> None:
    words = [str(PROGRAMS / word) if word.endswith(".py") else word for word in command]
    code, said = watch(current_python, *words)
    assert (code, said.count("repros: ")) == (0, 1), said
    assert said.startswith("repros: no finding: ")
