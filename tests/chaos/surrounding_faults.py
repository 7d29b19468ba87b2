"""Faults in what surrounds a runner: another runner, a damaged environment, the clock, the terminal, no `/proc`."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

import psutil

from repros.engine import record
from repros.engine.environments.store import find_damage
from repros.model import Verdict
from tests.chaos.cell_faults import kill
from tests.chaos.fake_environment import ROOT, TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness, wait_for
from tests.chaos.runner_faults import check_results, ensure_ended, start, with_target
from tests.chaos.worker import NotInjectedError, Trial, Worker, run_trial

_RUN = ("-m", "tests.chaos.fake_environment", "run", "--python", sys.executable, "--catalogue", str(TARGET))
_TWO_CELLS = ("--strategy", "plain", "--variant", "failing", "--variant", "fixed")
_CLOCK = TARGET.with_name("clock.c")
_YEAR = 365 * 86_400


def run_twice_in_one_folder(worker: Worker, rng: random.Random) -> str:
    """Start two runs with one results file, and now and then kill the first: no announced result is lost."""
    folder, _, first = start(worker, rng, _RUN, [*_TWO_CELLS, "--results"])
    time.sleep(rng.uniform(0, 3))
    append = ["--append"] if rng.random() < 0.5 else []
    with (folder / "out-2").open("wb") as out:
        command = [
            sys.executable,
            *with_target(folder, _RUN),
            *_TWO_CELLS,
            *append,
            "--results",
            str(folder / "results.jsonl"),
        ]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        second = psutil.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=out, start_new_session=True)
    killed = rng.random() < 0.3
    try:
        if killed:
            time.sleep(rng.uniform(0, 3))
            kill(first.pid)
        codes = [first.wait(120 * slowness()), second.wait(120 * slowness())]
    finally:
        ensure_ended(first)
        ensure_ended(second)
    check_no_process_left(folder, None, patience())
    outputs = [(folder / name).read_text("utf-8", "replace") for name in ("out", "out-2")]
    announced = [len(_announced(output)) for output in outputs]
    refused = ["another run is writing to" in output for output in outputs]
    results = folder / "results.jsonl"
    lines = len(list(record.read(results))) if results.exists() else 0
    # A run that was not refused and does not append may begin only before or after the other's.
    expected = sum(announced) if append or any(refused) else max(announced)
    if lines < expected or (codes[1] not in {0, 2}) or (codes[1] == 2) != refused[1]:
        raise Violation(f"codes {codes}, announced {announced}, {lines} recorded: {outputs}")
    return "refused" if any(refused) else f"{lines} recorded" if lines < 4 else "4 recorded"


def damage_an_environment(worker: Worker, rng: random.Random) -> str:
    """Cut, empty, lengthen or remove a file of an installed environment: the damage is found, with the file's name."""
    installed = Path(psutil.__file__).parents[1]
    name = rng.choice(sorted(path.name for path in installed.glob("*.dist-info") if (path / "RECORD").is_file()))
    site = worker.new_folder() / "lib/python3/site-packages"
    copytree(installed / name, site / name)
    rows = [row.split(",") for row in (site / name / "RECORD").read_text("utf-8").splitlines()]
    sized = [(row[0], int(row[-1])) for row in rows if row[-1].isdecimal() and not row[0].endswith(".pyc")]
    for path, size in sized:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(bytes(size))
    root = site.parents[2]
    if not sized or find_damage(root) is not None:
        raise Violation(f"damage found where there is none: {name}: {find_damage(root)}")
    path, size = rng.choice(sized)
    kinds = [size // 2, 0, size + 1 + rng.randrange(9), None]
    wanted = rng.choice([kind for kind in kinds if kind != size])
    if wanted is None:
        (site / path).unlink()
    else:
        (site / path).write_bytes(bytes(wanted))
    found = find_damage(root)
    if found is None or path not in found:
        raise Violation(f"{path} of {wanted} bytes instead of {size}: {found}")
    return "named"


def turn_the_clock(worker: Worker, rng: random.Random) -> Verdict | str:
    """Let the clock jump by up to a year, forwards or back, while cells run: verdicts and order do not change."""
    folder = worker.new_folder()
    folder.mkdir()
    library, clock = folder / "clock.so", folder / "offset"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _CLOCK], check=True, capture_output=True)
    except FileNotFoundError as error:
        raise NotInjectedError("there is no C compiler") from error
    clock.write_text("0")
    fake = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(clock)}
    modes = ["--strategy", "lingers", *_TWO_CELLS, "--launch", rng.choice(["warm", "cold"])]
    folder, variable, runner = start(worker, rng, _RUN, [*modes, "--results"], fake)
    try:
        until = time.monotonic() + 120 * slowness()
        while runner.poll() is None and time.monotonic() < until:
            clock.write_text(str(rng.randrange(-_YEAR, _YEAR)))
            time.sleep(rng.uniform(0.05, 0.5))
        code = runner.wait(patience())
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    output = (folder / "out").read_text("utf-8", "replace")
    verdicts = sorted(line["verdict"] for line in record.read(folder / "results.jsonl"))
    if code != 0 or verdicts != ["clean", "clean", "reproduced", "reproduced"]:
        raise Violation(f"status {code}, {verdicts}: {output[-1500:]}")
    return run_trial(worker, rng, Trial("plain"))


def close_the_terminal(worker: Worker, rng: random.Random) -> Verdict | str:
    """Close the terminal of a run at any moment: it ends with its cells, and what it had recorded stays."""
    master, slave = os.openpty()
    mode = rng.choice(["gate", "daemon_and_gate"])
    modes = ["--strategy", "plain", "--strategy", mode, "--jobs", rng.choice("12"), "--results"]
    # A session of its own whose terminal this is, as that of a shell; it gets SIGHUP when the other end is closed.
    script = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    words = ["-c", script, sys.executable, *_RUN]
    folder, variable, runner = start(worker, rng, words, modes, stdin=slave, on_terminal=True)
    os.close(slave)
    try:
        while runner.is_running() and runner.cmdline()[1:2] == ["-c"]:
            time.sleep(0.05)  # it does not have its terminal yet
        if rng.random() < 0.5:
            wait_for(folder, f"ready-{rng.choice([0, 1])}", 30)
        else:
            time.sleep(rng.uniform(0, 2.5))
        os.close(master)
        began = time.monotonic()
        status = runner.wait(60 * slowness())
        took = time.monotonic() - began
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    # Before Python has begun, SIGHUP ends it; then its handler does; a write may fail before it arrives.
    if took > patience() or status not in {129, -1, 2}:
        raise Violation(f"status {status} after {took:.1f} s")
    return check_results(worker, folder, rng)


def hide_proc(worker: Worker, rng: random.Random) -> str:
    """Run without `/proc`: no cell is judged, whatever it did, and the output has the reason."""
    folder = worker.new_folder()
    folder.mkdir()
    words = [
        sys.executable,
        *with_target(folder, _RUN),
        *_TWO_CELLS,
        "--launch",
        rng.choice(["warm", "cold"]),
        "--results",
    ]
    script = 'mount -t tmpfs none /proc || exit 77; exec "$@"'
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*unshare, *words, str(folder / "results.jsonl")],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == 77 or "unshare:" in done.stderr:
        raise NotInjectedError("no mounts are allowed here")
    check_no_process_left(folder, None, patience())
    verdicts = [line["verdict"] for line in record.read(folder / "results.jsonl")]
    if done.returncode != 1 or verdicts != ["infra", "infra"] or "/proc is not mounted here" not in done.stdout:
        raise Violation(f"status {done.returncode}, {verdicts}: {done.stdout[-800:]} {done.stderr[-800:]}")
    return "infra"


def _announced(output: str) -> Sequence[str]:
    return re.findall(r"^\[ *\d+/\d+\] (\w+)", output, re.MULTILINE)
