"""Colours on a terminal unless NO_COLOR is set, none in a pipe; lines as wide as the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import RAISES, ROOT


def on_a_terminal(*words: str, columns: int = 80, **settings: str) -> str:
    """Run a command on its own terminal and return the output."""
    import fcntl
    import struct
    import termios

    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "FORCE_COLOR"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "repros", *words], cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal,
        env={**environ, "TERM": "xterm-256color", **settings},
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    try:
        while block := os.read(controller, 4096):
            shown += block
    except OSError:  # Linux's answer when no process has the terminal open any more
        pass
    os.close(controller)
    assert process.wait(60) == 0
    return shown.decode()


def test_colours_on_a_terminal_unless_no_color_is_set() -> None:
    assert "\x1b[1mRPR-9001 \x1b[0mA plain exception" in on_a_terminal("list", "--catalogue", RAISES)
    # Bold and dim are not colours, so they may stay.
    plain = on_a_terminal("show", "RPR-9001", "--catalogue", RAISES, NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "RPR-9001 A plain exception" in plain


@pytest.mark.parametrize("words", [("list",), ("show", "RPR-0005"), ("stacks",)])
def test_no_colours_in_a_pipe(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "repros", *words], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    assert b"\x1b" not in done.stdout


def test_as_wide_as_the_terminal() -> None:
    shown = on_a_terminal("list", "--family", "fabric", columns=60)
    assert max(len(line) for line in shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()) <= 60 + 10


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m repros list --json | head -1"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[\n", "")
    assert done.returncode in {0, 141}, "0 if all of it fitted into the pipe before its reader ended"
