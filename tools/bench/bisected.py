"""CPU seconds of the steps in which `repros bisect` tests one release.

    python -m tools.bench.bisected [--keep]

Needs the package index. `--keep` puts the figures into `kept.json`; `python -m tools.bench.bisected_table` writes them
into `docs/usage.md`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repros.engine import environments
from repros.engine.catalogue import load
from repros.engine.environments.copies import copy
from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import ReportProgress
from repros.engine.probe import probe
from repros.model import Device
from repros.scripts.bisect.imports import ImportMemory
from repros.scripts.bisect.question import Question, ask, choose_cell
from repros.scripts.bisect.runner import ReleaseRunner
from repros.scripts.bisect.swap import Swap
from tools.bench import machine
from tools.bench.kept import keep
from tools.bench.measure import spent

REPRO, PACKAGE, STACK = "RPR-0016", "lightning", "2023-12"
RELEASES = ("2.6.6", "2.2.0", "2.0.6")
"""The last one needs many packages that the stack does not have."""
STEPS = ("resolve", "install", "import", "server and runs")


def measure_bisected(report_progress: ReportProgress) -> dict[str, Any]:
    """Ask each release twice, so that the second time finds its wheels in uv's cache; return the second's figures."""
    observed = machine.Machine()
    catalogue = load()
    question = ask(choose_cell(catalogue, catalogue.find(REPRO)), PACKAGE, STACK)
    releases = {str(release.version): release for release in question.releases}
    python = environments.ensure(question.stack, report_progress)
    own = probe(python, question.stack.name, sim=question.spec.device is Device.SIM)
    asked: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, copy(question.stack, report_progress) as copied:
        stacks_own = {*Swap(question.stack, PACKAGE, copied).versions.items()}
        for turn in ("first", "second"):
            runs = Path(folder, turn)
            runner = ReleaseRunner(question, own, copied, Processes())
            asked = []
            for version in RELEASES:
                answer = _ask(runner, question, releases[version], runs)
                others = {*runner._swap.versions.items()} - stacks_own
                asked.append({**answer, "others": sum(name not in runner._swap._swapped for name, _ in others)})
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "repro": REPRO,
        "package": PACKAGE,
        "stack": STACK,
        "releases": asked,
        "machine": observed.describe(),
    }


def _ask(runner: ReleaseRunner, question: Question, release: PackageRelease, runs: Path) -> dict[str, Any]:
    """Ask a release, with no memory of another time; return the processor seconds of each step."""
    seconds: defaultdict[str, float] = defaultdict(float)
    swap = runner._swap
    for owner, method, step in (
        (swap, "_resolve", "resolve"),
        (swap, "install", "install"),
        (runner, "_import", "import"),
        (runner, "_examine", "server and runs"),
    ):
        setattr(owner, method, _timed(getattr(type(owner), method).__get__(owner), step, seconds))
    memory = ImportMemory(runs / f"{release.version}.jsonl", question.stack)
    answer = runner.probe(release, memory, runs / str(release.version))
    seconds["install"] -= seconds["resolve"]  # which is a part of it
    return {
        "version": str(release.version),
        "answer": answer.answer.value,
        "processor": {step: round(seconds[step], 1) for step in STEPS},
    }


def _timed(call: Callable[..., Any], step: str, seconds: defaultdict[str, float]) -> Callable[..., Any]:
    def timed(*words: Any, **options: Any) -> Any:
        before = spent()
        try:
            return call(*words, **options)
        finally:
            seconds[step] += spent() - before

    return timed


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.bisected")
    parser.add_argument("--keep", action="store_true", help="put the figures into tools/bench/kept.json")
    asked = parser.parse_args()
    measured = {"bisected": measure_bisected(print)}
    print(json.dumps(measured, indent=2))
    if asked.keep:
        keep(measured)


if __name__ == "__main__":
    main()
