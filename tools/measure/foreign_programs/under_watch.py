"""Run a program under `repros watch` with its default options."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from repros.diagnose.watch import session
from repros.diagnose.watch.events import Event
from repros.diagnose.watch.report import Report
from repros.engine import catalogue
from tools.measure.foreign_programs.place import CPU_ONLY, environ, prepare, version, version_of
from tools.measure.foreign_programs.programs import Program
from tools.measure.foreign_programs.simulated import REPROS

KEPT = Path(__file__).parents[3] / "tests/diagnose/watch/foreign.jsonl"
"""The results that the table in `docs/watch.md` shows."""
DEADLINE = 300
"""Seconds for one program on a quiet machine."""


def run(
    program: Program, python: Path, sources: Path, deadline: int = DEADLINE, *, on_gpus: bool = False
) -> dict[str, Any]:
    """Run a program under the watch, on simulated GPUs if so asked; return the line to keep."""
    trained: set[int] = set()
    failures: list[Event] = []
    report = Report(catalogue.load(), lambda finding, ids: print(finding, ids, file=sys.stderr))

    def take(event: Event) -> None:
        trained.update({event["pid"]} if event["event"] in {"stepping", "digest"} else ())
        failures.extend([event] if event["event"] == "failed" else [])
        report.take(event)

    with tempfile.TemporaryDirectory() as folder:
        place = prepare(program, python, sources, Path(folder))
        words = [
            "timeout",
            "-k",
            "5",
            str(deadline),
            *(_simulate(program) if on_gpus else ()),
            *shlex.split(program.command),
        ]
        with _started_in(place, environ(python, Path(folder)) | ({} if on_gpus else CPU_ONLY)):
            begun = time.monotonic()
            code = session.run(words, session.SessionOptions(1000), take)
    report.finish()
    for event in failures:
        print(json.dumps(event), file=sys.stderr)
    return {
        "program": program.name,
        "source": program.source,
        "version": version(program, python, sources),
        "command": program.command,
        "processes": program.processes,
        "stack": version_of("torch", python),
        "libraries": [version_of(name, python) for name in program.libraries],
        "trained": len(trained),
        "findings": [finding.check for finding, _ in report.found],
        "failures": len(failures),
        "exit": code,
        "seconds": round(time.monotonic() - begun, 1),
    }


def _simulate(program: Program) -> list[str]:
    return [sys.executable, "-c", REPROS, "simulate", "--hide-gpus", "--gpus", str(program.gpus), "--"]


class _started_in:  # noqa: N801 - used as a context
    """The folder and the environment of the program, which inherits those of this process."""

    def __init__(self, place: Path, environ: dict[str, str]) -> None:
        self._place, self._environ = place, environ

    def __enter__(self) -> None:
        self._before, self._folder = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(self._environ)
        os.chdir(self._place)

    def __exit__(self, *_: object) -> None:
        os.environ.clear()
        os.environ.update(self._before)
        os.chdir(self._folder)
