"""Start-up: the seconds of commands that compute little, as a ratio to `python -c pass`; also a program of its own."""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from repros.model.settings import CATALOGUE
from tests.diagnose.match.golden_logs import GOLDEN
from tools.bench.kept import spread
from tools.bench.measure import Sample

PASS = "python -c pass"  # noqa: S105 - a command, not a password
ROUNDS = 20
WANTED = 0.25
"""Most seconds that a command may take."""
WATCH = "repros watch -- python -c pass"
WANTED_OF_WATCH = 0.5
"""Most seconds that it may take, without torch."""
MANY = 500
"""Failures of a catalogue that is larger than today's."""
_ROOT = Path(__file__).parents[2]
_LOG, _ISSUE, _REQUIREMENTS, _CATALOGUE = "short.log", "issue.md", "requirements.txt", "many"
_MANY = f", {MANY} failures"
_COMMANDS = {
    PASS: ("-c", "pass"),
    "repros --version": ("-m", "repros", "--version"),
    "repros --help": ("-m", "repros", "--help"),
    "repros list": ("-m", "repros", "list"),
    "repros show": ("-m", "repros", "show", "RPR-0001"),
    "repros match": ("-m", "repros", "match", _LOG),
    "repros triage": ("-m", "repros", _LOG),
    "repros triage, an issue": ("-m", "repros", _ISSUE),
    "repros audit": ("-m", "repros", "audit", _REQUIREMENTS),
    "repros stacks": ("-m", "repros", "stacks"),
    "completion": ("-m", "repros"),
    f"repros list{_MANY}": ("-m", "repros", "list", "--catalogue", _CATALOGUE),
    f"repros match{_MANY}": ("-m", "repros", "match", _LOG, "--catalogue", _CATALOGUE),
    f"repros triage, an issue{_MANY}": ("-m", "repros", "triage", _ISSUE, "--catalogue", _CATALOGUE),
    WATCH: ("-m", "repros", "watch", "--", sys.executable, "-c", "pass"),
}
RATIOS = {
    "repros --help": 4.0,
    "repros list": 6.0,
    "repros match": 6.0,
    "repros triage": 10.0,
    "repros triage, an issue": 10.0,
    f"repros list{_MANY}": 6.0,
    f"repros match{_MANY}": 6.0,
    f"repros triage, an issue{_MANY}": 10.0,
}
"""Most times the processor time of `python -c pass`; the other commands are compared with their kept figures alone."""
_COMPLETION = {"_REPROS_COMPLETE": "bash_complete", "COMP_WORDS": "repros li", "COMP_CWORD": "1"}
_ANSWERS = (0, 1)
"""Exit statuses of a command that answered; `audit` ends with 1 if it found something."""


@cache
def time_startup(rounds: int) -> dict[str, list[Sample]]:
    """Run all commands in turn, so that other load affects all alike; return the samples of each."""
    taken: dict[str, list[Sample]] = {command: [] for command in _COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(GOLDEN / "rpr-0002-failing-ddp-hand-2023-12.log", Path(folder, _LOG))
        shutil.copyfile(_ROOT / "tests/scripts/triage/inputs/issue.md", Path(folder, _ISSUE))
        Path(folder, _REQUIREMENTS).write_text("lightning==2.5.0\ntorch==2.6.0\n", "utf-8")
        write_catalogue(Path(folder, _CATALOGUE))
        for number in range(rounds + 1):
            for command in _COMMANDS:
                sample = _sample(command, Path(folder))
                if number > 0:  # The first fills the disk's cache and writes bytecode.
                    taken[command].append(sample)
    return taken


def write_catalogue(folder: Path, failures: int = MANY) -> None:
    """Write a private catalogue: copies of the package's scripts and of their hints, with new ids."""
    scripts = sorted(CATALOGUE.rglob("*.py"))
    hints = (CATALOGUE / "match.toml").read_text("utf-8")
    for copy in range(-(-failures // len(scripts))):
        own = folder / str(copy)
        for script in scripts[: failures - copy * len(scripts)]:
            new = own / script.relative_to(CATALOGUE)
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(_ID.sub(partial(_renamed, copy), script.read_text("utf-8")), "utf-8")
        (own / "match.toml").write_text(_ID.sub(partial(_renamed, copy), hints), "utf-8")


_ID = re.compile(r"RPR-(\d{4})")


def _renamed(copy: int, match: re.Match[str]) -> str:
    return f"BIG-{copy * 1000 + int(match[1]):04}"


def _sample(command: str, folder: Path) -> Sample:
    environ = os.environ | {"PYTHONPATH": str(_ROOT)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # which would compile all modules in each sample
    if command == "completion":
        environ |= _COMPLETION
    spent, started = _cpu(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *_COMMANDS[command]], cwd=folder, env=environ, capture_output=True, check=False
    )
    seconds = time.perf_counter() - started
    assert done.returncode in _ANSWERS, done.stderr
    assert done.stdout or done.stderr or command == PASS, command
    return Sample(seconds, _cpu() - spent)


def _cpu() -> float:
    """Return the processor seconds of the children that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def startup_ratios(taken: Mapping[str, Sequence[Sample]]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the processor seconds of each command, paired with those of `python -c pass` in the same round."""
    for command, samples in taken.items():
        if command != PASS:
            yield command, [(sample.cpu, base.cpu) for sample, base in zip(samples, taken[PASS], strict=True)]


def startup_figures(taken: Mapping[str, Sequence[Sample]]) -> dict[str, Any]:
    """Return the seconds of each command, and their ratio to those of `python -c pass` in the same round."""
    return {command: _figures(samples, taken[PASS]) for command, samples in taken.items()}


def _figures(samples: Sequence[Sample], bases: Sequence[Sample]) -> dict[str, Any]:
    pairs = list(zip(samples, bases, strict=True))
    return {
        "rounds": len(samples),
        "seconds": spread([sample.seconds for sample in samples], 3),
        "ratio": spread([sample.seconds / base.seconds for sample, base in pairs], 1),
        "cpu_seconds": spread([sample.cpu for sample in samples], 3),
        "cpu_ratio": round(statistics.median(sample.cpu / base.cpu for sample, base in pairs), 1),
    }


def compare_startup(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the target of each command with the measured figure, and whether it is met."""
    return [
        {
            "what": f"start-up, {command}",
            "wanted": f"at most {WANTED_OF_WATCH if command == WATCH else WANTED} s",
            "measured": f"{timing['seconds']['median']:.2f} s, {timing['ratio']['median']:.1f}x {PASS}",
            "met": timing["seconds"]["median"] <= (WANTED_OF_WATCH if command == WATCH else WANTED),
        }
        for command, timing in measured.items()
        if command != PASS
    ]


def startup_table(measured: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""
    table = Table(title=f"start-up, as a ratio to {PASS} in the same round")
    for column in ("command", "rounds", "median s", "min", "max", f"x {PASS}", "min", "max", "cpu s", "x cpu"):
        table.add_column(column, justify="left" if column == "command" else "right")
    for command, timing in measured.items():
        seconds = [f"{timing['seconds'][which]:.3f}" for which in ("median", "min", "max")]
        ratios = [f"{timing['ratio'][which]:.1f}" for which in ("median", "min", "max")]
        cpu = [f"{timing['cpu_seconds']['median']:.3f}", f"{timing['cpu_ratio']:.1f}"]
        table.add_row(command, str(timing["rounds"]), *seconds, *ratios, *cpu)
    return table


if __name__ == "__main__":
    Console().print(startup_table(startup_figures(time_startup())))
