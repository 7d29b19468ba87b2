"""Faults that befall a whole runner: `repros run`, or pytest with its workers."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
import uuid
from pathlib import Path

import psutil

from repros.engine import record
from repros.model import Verdict
from tests.chaos.cells import Place, _kill, play
from tests.chaos.sham import ROOT, TARGET
from tests.chaos.witness import PATIENCE, Violation, nobody_left, wait_for

_ASKING = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def kill_the_runner(place: Place, rng: random.Random) -> Verdict | str:
    """SIGKILL `repros run` at any moment: between its cells, while servers start, in the middle of two cells."""
    return _end_a_runner(place, rng, signal.SIGKILL)


def ask_the_runner_to_end(place: Place, rng: random.Random) -> Verdict | str:
    """SIGINT, SIGTERM or SIGHUP to `repros run`: it ends in order, in less than 5 s, and says so."""
    return _end_a_runner(place, rng, rng.choice(list(_ASKING)))


def kill_the_keeper(place: Place, rng: random.Random) -> Verdict | str:
    """SIGKILL the reaper, then let the runner start another cell, and SIGKILL the runner."""
    return _end_a_runner(place, rng, signal.SIGKILL, keeper_first=True)


def kill_a_worker(place: Place, rng: random.Random) -> Verdict | str:
    """SIGKILL a worker of pytest-xdist while its cell runs; the others' results are all there."""
    folder, mark, runner = _start(
        place,
        rng,
        ["-m", "pytest", "-p", "tests.chaos.sham", "-p", "no:cacheprovider", "-n", "2", "-q", str(TARGET)],
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
        runner.wait(60)
    finally:
        _make_sure(runner)
    nobody_left(folder, mark, PATIENCE)
    return _look_at_results(place, folder, rng)


def _end_a_runner(
    place: Place, rng: random.Random, number: signal.Signals, *, keeper_first: bool = False
) -> Verdict | str:
    jobs, launch = str(rng.choice([1, 2])), rng.choice(["warm", "cold"])
    mode = rng.choice(["gate", "daemon_and_gate"])
    folder, mark, runner = _start(
        place,
        rng,
        ["-m", "tests.chaos.sham", "run", "--python", sys.executable, "--catalogue", str(TARGET)],
        ["--strategy", "plain", "--strategy", mode, "--jobs", jobs, "--launch", launch, "--results"],
    )
    try:
        if rng.random() < 0.5 or keeper_first:
            wait_for(folder, f"ready-{rng.choice([0, 1])}", 30)
        else:
            time.sleep(rng.uniform(0, 2.5))
        if keeper_first:
            for child in runner.children():
                if any(word.endswith("reaper.py") for word in child.cmdline()):
                    child.kill()
            while len(list(folder.rglob("ready-1"))) < 2 and runner.is_running():
                time.sleep(0.05)
        reapers = [child for child in runner.children() if any(w.endswith("reaper.py") for w in child.cmdline())]
        began = time.monotonic()
        runner.send_signal(number)
        status = runner.wait(30)
        took = time.monotonic() - began
    finally:
        _make_sure(runner)
    nobody_left(folder, mark, PATIENCE)
    if psutil.wait_procs(reapers, timeout=PATIENCE)[1]:
        raise Violation("a reaper outlives its runner")
    if number in _ASKING and (took > PATIENCE or status not in {_ASKING[number], -number}):
        raise Violation(f"{number.name}: status {status} after {took:.1f} s: {(folder / 'out').read_text()[-800:]}")
    return _look_at_results(place, folder, rng)


def _start(place: Place, rng: random.Random, words: list[str], more: list[str]) -> tuple[Path, str, psutil.Popen]:
    """Start a runner whose cells carry a mark in their environment."""
    folder = place.new()
    folder.mkdir()
    mark = f"CHAOS={uuid.UUID(int=rng.getrandbits(128))}-{os.getpid()}-{place.count}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CHAOS": mark.partition("=")[2], "REPROS_CHAOS": "1"}
    with (folder / "out").open("wb") as out:
        command = [sys.executable, *words, *more, str(folder / "results.jsonl")]
        process = psutil.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=out, start_new_session=True)
    return folder, mark, process


def _look_at_results(place: Place, folder: Path, rng: random.Random) -> Verdict | str:
    """What was announced is recorded, whole; what was hit is not there as documented; the next cell runs."""
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
    play(place, rng, "plain")
    return f"{len(lines)} recorded" if len(lines) < 3 else "3 or more recorded"


def _make_sure(runner: psutil.Popen) -> None:
    if runner.is_running():
        _kill(runner.pid)
        runner.wait(10)
