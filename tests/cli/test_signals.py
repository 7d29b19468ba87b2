"""A run that is ended by a signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import HANGS, RAISES, ROOT, read_verdicts
from tests.transcript import mask

# What the fixture `here` does in this process, for a subprocess.
DRIVER = """\
import sys
from repros.cli import main
from repros.engine import environment
from tests.cli.command import fake_probe

environment.probe = fake_probe
sys.exit(main(sys.argv[1:]))
"""


def interrupt(folder: Path, number: signal.Signals) -> tuple[int, str, str]:
    """Send a signal to a run of two cells after the first; return its exit code and its two outputs."""
    words = ["run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--catalogue", HANGS]
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words, "--variant", "failing"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    latest = folder / ".repros/latest.jsonl"
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and not (latest.exists() and latest.stat().st_size):
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)  # the second cell hangs for longer
    return process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_shows_the_results_so_far(here: Path, number: signal.Signals) -> None:
    code, out, err = interrupt(here, number)
    assert (code, err, "1 of 2" in out) == (128 + number, "", True)
    assert read_verdicts() == ["failing reproduced"]


@pytest.mark.slow
def test_text(here: Path, snapshot: SnapshotAssertion) -> None:
    code, out, err = interrupt(here, signal.SIGINT)
    assert (code, err) == (130, "")
    assert snapshot == mask(re.sub(r" \d+\.\d$", " N", out, flags=re.MULTILINE))


INTERRUPTS = """\
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
"""
"""A `sitecustomize` that interrupts the process as it imports a module: Ctrl-C at a known moment of its start."""


@pytest.mark.parametrize(
    "module", ["repros.cli", "click", "repros.cli.main", "repros.cli.shared.streams", "repros.cli.run"]
)
def test_ctrl_c_while_the_command_line_is_imported(module: str, here: Path) -> None:
    (here / "sitecustomize.py").write_text(INTERRUPTS.format(module=module))
    done = subprocess.run(
        [sys.executable, "-m", "repros", "run", "--help"],
        env={**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{ROOT}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")  # click ends the line of the `^C`
