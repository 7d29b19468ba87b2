"""Run a program on the CPU and on simulated GPUs, and compare what it prints.

Both runs start with one seed, and the simulated devices draw the random numbers that the CPU would have drawn next
(`repros simulate --cpu-random`). If what they print is not even close, the program runs on the CPU once more: one that
differs from itself there cannot be compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from tools.measure.foreign_programs.numbers import ComparedNumbers, compare, numbers
from tools.measure.foreign_programs.place import CPU_ONLY, environ, prepare, version, version_of
from tools.measure.foreign_programs.programs import Program

KEPT = Path(__file__).parents[3] / "tests/simulate/foreign.jsonl"
"""The results that the table in `docs/simulate.md` shows."""
DEADLINE = 300
"""Seconds for one run of a program on a quiet machine."""
SITE = Path(__file__).parent / "site"
ROOT = Path(__file__).parents[3]
REPROS = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.__main__ import run; run()"
"""The command `repros` of this checkout, which puts nothing on the program's path."""

_ERROR = re.compile(r"(?:\[rank\d+\]: ?)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)")
_ECHO = re.compile(r"ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException")
"""Errors that say only that another process has failed."""


@dataclass(frozen=True)
class Ended:
    """How a run of a program ended."""

    code: int
    printed: dict[str, list[str]]
    """The numbers on its standard output, or else on its standard error."""
    errors: tuple[str, ...]
    """The lines that name errors in what it said, but not those that only say that another process has failed."""
    output: str
    on_device: int
    """How many processes allocated memory on a simulated GPU."""
    seconds: float


def run(program: Program, python: Path, sources: Path, deadline: int = DEADLINE) -> dict[str, Any]:
    """Run a program on the CPU and on simulated GPUs; return the line to keep."""
    with tempfile.TemporaryDirectory() as folder:
        place = prepare(program, python, sources, Path(folder, "prepared"), is_short=True)
        bench = PreparedProgram(program, python, Path(folder), place, deadline)
        cpu = None if program.needs_gpu else bench.run()
        here = cpu if cpu is not None and cpu.code else bench.run(on_gpus=True)
        result = _judge(program, bench, cpu, here)
    return {
        **identify(program, python, sources),
        "exit": here.code,
        "cpu_exit": None if cpu is None else cpu.code,
        "on_device": here.on_device,
        "outcome": result.outcome,
        "compared": result.compared,
        "difference": float(f"{result.difference:.1e}"),
        "where": list(result.where),
        "seconds": round(here.seconds, 1),
        "error": "" if here.code == 0 else here.errors[-1],
    }


def identify(program: Program, python: Path, sources: Path) -> dict[str, Any]:
    """Return what the line of a run on simulated GPUs begins with: which program it was, and on what it ran."""
    return {
        "program": program.name,
        "source": program.source,
        "version": version(program, python, sources),
        "command": program.gpu_command,
        "gpus": program.gpus,
        "torch": version_of("torch", python).split()[-1],
    }


def _judge(program: Program, bench: PreparedProgram, cpu: Ended | None, here: Ended) -> ComparedNumbers:
    if cpu is None or here.code or cpu.code:
        return ComparedNumbers("not compared", 0)
    in_order = program.processes == 1
    result = compare(here.printed, cpu.printed, in_order=in_order)
    if result.outcome == "different":
        itself = compare(bench.run().printed, cpu.printed, in_order=in_order)
        if itself.outcome != "equal":
            return ComparedNumbers("differs on the CPU", result.compared, itself.difference, itself.where)
    return result


@dataclass(frozen=True)
class PreparedProgram:
    """A prepared program, which each run gets a fresh copy of, in the same place."""

    program: Program
    python: Path
    folder: Path
    place: Path
    """The program's folder among what was prepared."""
    deadline: int

    def run(self, *, on_gpus: bool = False) -> Ended:
        prepared, copy = self.folder / "prepared", self.folder / "run"
        shutil.copytree(prepared, copy, symlinks=True)
        notes = self.folder / "notes"
        notes.write_text("", "utf-8")
        variables = environ(self.python, copy) | {
            "PYTHONPATH": str(SITE),
            "PYTHONHASHSEED": "0",
            "FOREIGN_NOTES": str(notes),
        }
        try:
            if on_gpus:
                options = ["--hide-gpus", "--cpu-random", "--gpus", str(self.program.gpus)]
                words = [sys.executable, "-c", REPROS, "simulate", *options, "--"]
                words += shlex.split(self.program.gpu_command)
            else:
                words, variables = shlex.split(self.program.command), variables | CPU_ONLY
            return self._run(words, copy / self.place.relative_to(prepared), variables, notes)
        finally:
            shutil.rmtree(copy)

    def _run(self, words: list[str], place: Path, variables: Mapping[str, str], notes: Path) -> Ended:
        begun = time.monotonic()
        started = subprocess.Popen(words, cwd=place, env=variables, stdout=PIPE, stderr=PIPE, start_new_session=True)
        try:
            out, err = started.communicate(timeout=self.deadline)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            out, err = started.communicate()
            err += f"\nTimeoutError: exceeded {self.deadline} s".encode()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        on_device = len(set(notes.read_text("utf-8").split()))
        printed, errors = (stream.decode(errors="replace") for stream in (out, err))  # "\r" is kept, which ends no line
        shown = numbers(printed) or numbers(errors)
        return Ended(started.returncode, shown, error_lines(errors), printed, on_device, time.monotonic() - begun)


def error_lines(text: str) -> tuple[str, ...]:
    """Return the lines that name errors in a program's output, or its last line: at least one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = (_ERROR.match(line) for line in lines)
    errors = [match[1] for match in found if match and not _ECHO.search(match[1])]
    return tuple(line[:300] for line in errors or lines[-1:] or [""])
