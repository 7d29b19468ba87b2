"""`repros simulate`: run any program on simulated GPUs."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import click

from repros.cli.shared.example import example
from repros.cli.shared.inputs import find_interpreter
from repros.cli.shared.options import program_option
from repros.inside import contract
from repros.model.errors import ReprosError
from repros.simulate import parse_memory, program_environ, variables
from repros.simulated_gpus.profiles import PROFILES

_PYTHON = re.compile(r"python[\d.]*")
_OLDEST = (3, 9)
"""The oldest Python that loads simulated GPUs."""
_LONGEST_LINE = 4096
"""Bytes of a script's first line."""


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "repros simulate --gpus 2 -- torchrun --nproc-per-node 2 train.py",
        "repros simulate --gpus 1 --like h100 -- python train.py",
        "repros simulate --gpus 2 --memory 24GB -- pytest tests",
    ),
)
@click.option("--gpus", type=int, required=True, metavar="N", help="Number of simulated GPUs.")
@click.option(
    "--memory", metavar="SIZE", help="Memory per GPU, such as 24GB; beyond it, torch.OutOfMemoryError is raised."
)
@click.option("--like", metavar="NAME", help=f"Report name, memory and capability of this GPU: {', '.join(PROFILES)}.")
@click.option(
    "--cpu-random", is_flag=True, help="Use the CPU's random numbers, to compare losses with a run on the CPU."
)
@click.option("--hide-gpus", is_flag=True, help="Simulate even if real GPUs are present, and hide them.")
@program_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
def simulate(
    gpus: int,
    memory: str | None,
    like: str | None,
    python: Path | None,
    command: tuple[str, ...],
    *,
    cpu_random: bool,
    hide_gpus: bool,
) -> None:
    """Run a program unmodified on simulated GPUs.

    In every Python process of the program, `cuda` is the simulated accelerator: host memory with CUDA's rules, and
    nccl collectives over Gloo. It reproduces errors and results, not speed. The program needs torch 2.0 or newer in
    its environment, and a C++ compiler on first use.
    """
    size = None if memory is None else parse_memory(memory)
    chosen = variables(gpus, memory=size, like=like, cpu_random=cpu_random, hide_gpus=hide_gpus)
    environ = dict(os.environ)
    if python is not None:
        environ["PATH"] = contract.path_with(str(find_interpreter(python).parent), environ.get("PATH", os.defpath))
    environ = program_environ(environ, chosen)
    if option := _isolating_option(command):
        raise ReprosError(f"python {option} loads no simulated GPUs, which come by PYTHONPATH; leave the option out.")
    program = shutil.which(command[0], path=environ["PATH"])
    if program is None and command[0].endswith(".py"):
        raise ReprosError(
            f"{command[0]!r} cannot be started as it is; give the program that runs it: python {command[0]}"
        )
    if program is None:
        raise ReprosError(f"there is no program {command[0]!r} on PATH; name it, or give its path.")
    _refuse_old_python(program, environ["PATH"])
    sys.stdout.flush()
    atexit._run_exitfuncs()  # noqa: SLF001 - its only name; a program that is replaced never comes to its end
    os.execve(program, list(command), environ)  # noqa: S606 - the user's own command


def _refuse_old_python(program: str, path: str) -> None:
    """Raise ReprosError if a program is a Python, or a script of one, that cannot load simulated GPUs."""
    python = _python_of(program, path)
    if python is None:
        return
    # Without `site`: it would load the simulated GPUs.
    command = [python, "-E", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False).stdout
        major, minor = map(int, output.split(b"."))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return  # what it does instead, the program shows
    if (major, minor) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ReprosError(
            f"{python} is Python {major}.{minor}, and simulated GPUs need {oldest} or newer; --python names another."
        )


def _python_of(program: str, path: str) -> str | None:
    """Return the Python of a program: itself, or that of a script's first line, such as torchrun's; None for others."""
    if _PYTHON.fullmatch(Path(program).name):
        return program
    try:
        with Path(program).open("rb") as file:
            first = file.readline(_LONGEST_LINE)
    except OSError:
        return None
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    words = words[1:] if words and Path(words[0]).name == "env" else words
    return shutil.which(words[0], path=path) if words and _PYTHON.fullmatch(Path(words[0]).name) else None


def _isolating_option(command: Sequence[str]) -> str | None:
    """Return the option by which Python ignores PYTHONPATH or loads no site; the program would run without the GPUs."""
    program, *words = command
    if not _PYTHON.fullmatch(Path(program).name):
        return None
    options = takewhile(lambda word: re.match(r"-[^cm-]", word), words)
    return next((option for option in options if re.match(r"-[bBdiOPqRsuvx]*[IES]", option)), None)
