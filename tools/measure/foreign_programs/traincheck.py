"""Run the programs of TrainCheck's published errors under the watch, with each error and without.

Those that need GPUs run on simulated ones. `traincheck.toml` has the errors as well, and why the watch says nothing of
some.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.measure.foreign_programs import under_watch
from tools.measure.foreign_programs.place import read_kept
from tools.measure.foreign_programs.programs import TRAINCHECK, Program

KEPT = under_watch.KEPT.with_name("traincheck.jsonl")
"""The results that the table in `docs/watch.md` shows."""
DEADLINE = under_watch.DEADLINE


@dataclass(frozen=True)
class Error:
    """An error of the list."""

    name: str
    about: str
    """What is wrong, in a clause."""
    reason: str = ""
    """Why the watch cannot or should not report it; empty if it does."""
    same_as: str = ""
    """The error whose programs show this one, too."""


def read_errors() -> list[Error]:
    """Return the errors of the list."""
    return [Error(**error) for error in tomllib.loads(TRAINCHECK.read_text("utf-8"))["error"]]


def run(program: Program, python: Path, sources: Path, deadline: int = DEADLINE) -> dict[str, Any]:
    """Run a program; return the line to keep."""
    line = under_watch.run(program, python, sources, deadline, on_gpus=program.needs_gpu)
    return {"error": program.error, "variant": program.variant, **line}


def results_of(error: Error, variant: str) -> list[dict[str, Any]]:
    """Return the kept results of an error's programs, in the order of their names."""
    lines = read_kept(KEPT) if KEPT.exists() else []
    return [line for line in lines if (line["error"], line["variant"]) == (error.same_as or error.name, variant)]


def is_found(error: Error) -> bool:
    """Return whether the watch reported each failing program, and no fixed one."""
    failing, fixed = results_of(error, "failing"), results_of(error, "fixed")
    reported = [bool(line["findings"]) for line in failing]
    return bool(failing) and bool(fixed) and all(reported) and not any(line["findings"] for line in fixed)
