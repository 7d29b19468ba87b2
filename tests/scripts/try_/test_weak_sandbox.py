"""Where no namespace can be made: what is open comes first, then a question, and nothing runs unasked."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.try_ import without_namespaces
from tests.scripts.try_.conftest import ROOT, Write

TRY = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from repros.engine import environment, environments
from repros.cli.main import main
from repros.model import Device, Environment
environment.probe = lambda python, stack=None, **_: Environment(
    stack, Path(sys.executable), "3.11.9", {{"torch": "2.15.0"}}, {{Device.CPU: 2}}, stack=stack
)
environments.ensure = lambda stack, report_progress: Path(sys.executable)
sys.exit(main(["try", "touch.py", "--no-watch", *sys.argv[1:]]))
"""
COMMAND = [sys.executable, without_namespaces.__file__, sys.executable, "-c", TRY]
OPEN = "This system cannot build the whole sandbox, so the script reaches the network ("
pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/user/max_user_namespaces").exists(), reason="this system has no user namespaces to take away"
)


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    monkeypatch.delenv("REPROS_WEAK_SANDBOX", raising=False)
    write("touch.py", "print('it runs')\n")


def run(*options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def test_without_a_terminal_nothing_runs() -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert OPEN in err
    assert "your other processes, which it sees and may signal" in err
    assert err.endswith("The script is not run; --weak-sandbox runs it anyway, if you trust it.")


def test_a_dry_run_asks_nothing() -> None:
    assert run("--dry-run")[0] == 0


def test_whoever_accepts_it_is_reminded() -> None:
    code, out, err = run("--weak-sandbox")
    assert (code, out.partition(" after ")[0]) == (0, "current clean")
    assert OPEN in err
    assert "no network" not in err


@pytest.mark.parametrize(("answer", "expected"), [(b"y\n", 0), (b"n\n", 130), (b"\n", 130)])
def test_a_terminal_is_asked(answer: bytes, expected: int) -> None:
    controller, terminal = pty.openpty()
    with subprocess.Popen(COMMAND, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal) as running:
        os.close(terminal)
        os.write(controller, answer)
        shown = b""
        try:
            while piece := os.read(controller, 4096):
                shown += piece
        except OSError:  # the terminal is closed: the command has ended
            pass
        assert running.stdout is not None
        out = running.stdout.read()
        code = running.wait(60)
    os.close(controller)
    assert code == expected, shown
    assert b"Run the script anyway? [y/N]:" in shown
    assert (b"current clean" in out) is (expected == 0)
