"""A bisection whose process is killed between two answers, as the out-of-memory killer does it."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.scripts.try_.conftest import ROOT

_DIES = """\
import os, pickle, signal, sys

with open(sys.argv[1], "rb") as file:
    run, question, folder, jobs = pickle.load(file)


def die(line):
    if line.startswith("tinylib 1.4"):
        os.kill(os.getpid(), signal.SIGKILL)


run(question, folder, die, jobs=jobs)
"""


def bisect_until_killed(run: Callable[..., Any], question: Any, folder: Path, jobs: int) -> None:
    """Run a bisection in a process of its own, which is killed once it says the answer of release 1.4.

    Args:
        run: the function of a module that bisects; it takes the question, the folder, what prints a line, and `jobs`.
        question: what it asks of each release.
        folder: where it keeps its answers.
        jobs: releases side by side.
    """
    given = folder.with_name("question")
    given.write_bytes(pickle.dumps((run, question, folder, jobs)))
    done = subprocess.run([sys.executable, "-c", _DIES, given], check=False, capture_output=True, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
