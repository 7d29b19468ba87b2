"""Faults in a whole runner: `repros run`, or pytest with its workers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from repros.engine import record
from repros.model import Verdict
from tests.chaos.cell_faults import kill
from tests.chaos.fake_environment import ROOT, TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness, wait_for
from tests.chaos.worker import NotInjectedError, Trial, Worker, run_trial

_EXIT_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def kill_the_runner(worker: Worker, rng: random.Random) -> Verdict | str:
    """SIGKILL `repros run` at any moment: between its cells, while servers start, in the middle of two cells."""
    return _end_a_runner(worker, rng, signal.SIGKILL)


def interrupt_the_runner(worker: Worker, rng: random.Random) -> Verdict | str:
    """Send SIGINT, SIGTERM or SIGHUP to `repros run`: it ends with its cells within 5 s, with the right status."""
    return _end_a_runner(worker, rng, rng.choice(list(_EXIT_STATUS)))


def kill_the_reaper(worker: Worker, rng: random.Random) -> Verdict | str:
    """SIGKILL the reaper, let the runner start another cell, and SIGKILL the runner."""
    return _end_a_runner(worker, rng, signal.SIGKILL, reaper_first=True)


def kill_a_worker(worker: Worker, rng: random.Random) -> Verdict | str:
    """SIGKILL a worker of pytest-xdist while its cell runs: no other worker loses a result."""
    folder, variable, runner = start(
        worker,
        rng,
        ["-m", "pytest", "-p", "tests.chaos.fake_environment", "-p", "no:cacheprovider", "-n", "2", "-q", str(TARGET)],
        [
            *(word for strategy in ("plain", "gate") for word in ("--repro-strategy", strategy)),
            *(word for variant in ("failing", "fixed") for word in ("--repro-variant", variant)),
            *("--repro-python", sys.executable, "--repro-results"),
        ],
    )
    try:
        if wait_for(folder, "ready-1") is None:
            raise Violation(f"no cell ran: {(folder / 'out').read_text()[-2000:]}")
        workers = [child for child in runner.children() if "sys.stdin.readline" in " ".join(child.cmdline())]
        rng.choice(workers).kill()
        runner.wait(60 * slowness())
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    return check_results(worker, folder, rng)


def _end_a_runner(
    worker: Worker, rng: random.Random, number: signal.Signals, *, reaper_first: bool = False
) -> Verdict | str:
    jobs, launch = str(rng.choice([1, 2])), rng.choice(["warm", "cold"])
    mode = rng.choice(["gate", "daemon_and_gate"])
    folder, variable, runner = start(
        worker,
        rng,
        ["-m", "tests.chaos.fake_environment", "run", "--python", sys.executable, "--catalogue", str(TARGET)],
        ["--strategy", "plain", "--strategy", mode, "--jobs", jobs, "--launch", launch, "--results"],
    )
    try:
        if rng.random() < 0.5 or reaper_first:
            wait_for(folder, f"ready-{rng.choice([0, 1])}", 30)
        else:
            time.sleep(rng.uniform(0, 2.5))
        if reaper_first:
            killed = _reapers(runner)
            for reaper in killed:
                reaper.kill()
            psutil.wait_procs(killed, timeout=patience())
            # The next cell that starts has the runner start another.
            while not _reapers(runner):
                if not runner.is_running() or runner.status() == psutil.STATUS_ZOMBIE:
                    raise NotInjectedError("no other cell began")
                time.sleep(0.05)
        reapers = _reapers(runner)
        began = time.monotonic()
        runner.send_signal(number)
        status = runner.wait(30 * slowness())
        took = time.monotonic() - began
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    if psutil.wait_procs(reapers, timeout=patience())[1]:
        raise Violation("a reaper outlives its runner")
    if number in _EXIT_STATUS and (took > patience() or status not in {_EXIT_STATUS[number], -number}):
        raise Violation(f"{number.name}: status {status} after {took:.1f} s: {(folder / 'out').read_text()[-800:]}")
    return check_results(worker, folder, rng)


def start(
    worker: Worker,
    rng: random.Random,
    words: Sequence[str],
    more: Sequence[str],
    variables: Mapping[str, str] | None = None,
    *,
    stdin: int = subprocess.DEVNULL,
    on_terminal: bool = False,
) -> tuple[Path, str, psutil.Popen]:
    """Start a runner; return its folder, the variable in the environ of all its processes, and the process.

    Args:
        worker: gives it a folder.
        rng: chooses the variable.
        words: the arguments of Python.
        more: further ones, which the path of the results file follows.
        variables: more environment variables.
        stdin: its standard input.
        on_terminal: whether stdout and stderr are that, too; the file `out` then stays empty.
    """
    folder = worker.new_folder()
    folder.mkdir()
    variable = f"CHAOS={uuid.UUID(int=rng.getrandbits(128))}-{os.getpid()}-{worker.count}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CHAOS": variable.partition("=")[2], **(variables or {})}
    with (folder / "out").open("wb") as out:
        command = [sys.executable, *with_target(folder, words), *more, str(folder / "results.jsonl")]
        to = stdin if on_terminal else out
        process = psutil.Popen(
            command, cwd=ROOT, env=environ, stdin=stdin, stdout=to, stderr=to, start_new_session=True
        )
    return folder, variable, process


def with_target(folder: Path, words: Sequence[str]) -> list[str]:
    """Return a command's words with a copy of the toy in its place, whose deadline suits how busy the machine is."""
    copied = folder / TARGET.name
    if not copied.exists():
        text = TARGET.read_text("utf-8")
        copied.write_text(text.replace("# deadline = 6\n", f"# deadline = {6 * slowness():.0f}\n"), "utf-8")
    return [str(copied) if word == str(TARGET) else word for word in words]


def check_results(worker: Worker, folder: Path, rng: random.Random) -> Verdict | str:
    """Check the results file and that the next cell runs.

    Every announced result is recorded as a complete line, and no cell that the fault hit ended as documented.
    """
    results = folder / "results.jsonl"
    lines = list(record.read(results)) if results.exists() else []
    announced = re.findall(r"^\[ *\d+/\d+\] (\w+)", (folder / "out").read_text("utf-8", "replace"), re.MULTILINE)
    if len(lines) < len(announced):
        raise Violation(f"{len(announced)} results announced, {len(lines)} recorded")
    for raw in results.read_bytes().split(b"\n")[:-1] if results.exists() else []:
        json.loads(raw)
    for line in lines:
        documented = {"failing": "reproduced", "fixed": "clean"}.get(line["variant"])
        allowed = {documented, "infra"} if line["strategy"] == "plain" else {"infra", "different"}
        if line["variant"] != "hangs" and line["verdict"] not in allowed:
            raise Violation(f"{line['variant']} {line['strategy']}: {line['verdict']}: {line['reason']}")
    run_trial(worker, rng, Trial("plain"))
    return f"{len(lines)} recorded" if len(lines) < 3 else "3 or more recorded"


def _reapers(runner: psutil.Popen) -> list[psutil.Process]:
    """Return the runner's reapers; a child that has ended meanwhile is left out."""
    found = []
    for child in runner.children():
        with contextlib.suppress(psutil.Error):
            if any(word.endswith("reaper.py") for word in child.cmdline()):
                found.append(child)
    return found


def ensure_ended(runner: psutil.Popen) -> None:
    if runner.is_running():
        kill(runner.pid)
        runner.wait(10)
