"""Faults by a script that replaces what it writes by links, FIFOs and other files while the engine reads them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from repros.engine.launch import untrusted
from repros.model import Verdict
from tests.chaos.cell_faults import NEVER_AS_DOCUMENTED
from tests.chaos.fake_environment import ROOT, TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness
from tests.chaos.witnesses import MARK
from tests.chaos.worker import DOCUMENTED, NotInjectedError, Trial, Worker, run_trial

_SCRIPT = TARGET.with_name("plants.py")
_PLACES = ["events", "log", "stacks", "own folder", "another's events", "another's log", "main log", "room"]
_PLACES += ["processes", "watch", "temporary"]
_THINGS = ["link to a large file", "link to a small file", "link to a folder", "link to nothing", "link to a device"]
_THINGS += ["link to itself", "second name of a file", "FIFO", "socket", "folder", "huge file", "other file"]
_MOMENTS = ["now", "at the end", "again and again"]
_DIRECT = ["open it", "remove it", "rename it", "change its mode", "change its time", "remove its folder"]
_MOST_READ = 1_000_000
_TIMEOUT = 20
"""Seconds that a script gets on a machine whose processors are free."""


def plant_in_a_cell(worker: Worker, rng: random.Random) -> Verdict:
    """Replace a file of a cell by something else: that may hide the documented end, but never fakes one."""
    variant = rng.choice(["failing", "fixed"])
    folder = worker.new_folder()
    words = [rng.choice(_PLACES), rng.choice(_THINGS), rng.choice(_MOMENTS), str(worker.witnesses.folder)]
    folder.with_name(f"{folder.name}.plan").write_text("\n".join(words), "utf-8")
    allowed = NEVER_AS_DOCUMENTED | {DOCUMENTED[variant]}
    try:
        return run_trial(worker, rng, Trial("plants", None, allowed, (variant,), deadline=30, folder=folder))
    except Violation as error:
        raise Violation(f"{', '.join(words[:3])}: {error}") from error


def plant_in_a_sandbox(worker: Worker, rng: random.Random) -> str:
    """Do the same, or change a file outside directly, from an untrusted script: none is changed, and none is shown."""
    folder = worker.new_folder()
    folder.mkdir()
    script = Path(shutil.copy(_SCRIPT, folder))
    words = [rng.choice(_PLACES), rng.choice(_THINGS), rng.choice(_MOMENTS)]
    if rng.random() < 0.3:
        words = ["witness", rng.choice(_DIRECT), "now"]
    limit = _TIMEOUT * slowness()
    command = [sys.executable, "-m", "tests.chaos.fake_environment", "try", script.name, "--json"]
    command += ["--timeout", str(round(limit)), "--", *words, str(worker.witnesses.folder)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=4 * limit, check=False,
    )  # fmt: skip
    told = f"{', '.join(words)}: status {done.returncode}: {done.stdout[-800:]} {done.stderr[-800:]}"
    if done.returncode not in {0, 1} or "Traceback" in done.stderr:
        raise Violation(told)
    answer = json.loads(done.stdout)
    if not answer["walls"]["files"]:
        raise NotInjectedError("the sandbox has no files of its own here")
    check_no_process_left(folder, None, patience())
    (stack,) = answer["stacks"]
    # A script may destroy its own records, and is then not judged.
    destroyed = {"not judged"} if words[0] in {"events", "own folder", "processes"} else set()
    if stack["status"] not in {"clean", "exit", "signal"} | destroyed:
        raise Violation(told)
    if MARK in done.stdout + done.stderr or MARK in _written(Path(stack["logs"])):
        raise Violation(f"a file outside is shown: {told}")
    return str(stack["status"])


def _written(folder: Path) -> str:
    """Return the beginnings of all files below the folder of a run, without following a link."""
    files = [path for path in folder.rglob("*") if untrusted.is_file(folder, path)]
    return "\n".join(untrusted.read(folder, path, _MOST_READ).decode("utf-8", "replace") for path in files)
