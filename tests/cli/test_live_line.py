"""The live line: drawn on a terminal alone, erased for every other output, and gone in the end."""

from __future__ import annotations

import errno
import io
import re
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from repros.cli.shared.live import LiveReporter
from repros.cli.shared.live_line import LiveLine
from repros.cli.shared.output import console
from repros.cli.shared.streams import OutputError, echo

ERASE = "\r\x1b[K"


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        """The lines that a reader sees: what follows the last erasure of each."""
        return [line.rpartition(ERASE)[2] for line in self.getvalue().split("\n")]


class GoneTerminal(Terminal):
    """A terminal whose window was closed."""

    def write(self, _: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm-256color")
    return Terminal()


def test_output_is_above_the_line_and_nothing_of_it_stays(terminal: Terminal) -> None:
    line = LiveLine(terminal, 80, hidden=False)
    with redirect_stdout(terminal), line:
        line.describe("RPR-0001 on \x1b]0;title\x07cpu")
        assert terminal.screen == ["| RPR-0001 on cpu 0:00:00"]
        echo("RPR-0001 clean")
        assert terminal.screen == ["RPR-0001 clean", "| RPR-0001 on cpu 0:00:00"]
    assert terminal.getvalue().endswith(ERASE)
    assert terminal.screen == ["RPR-0001 clean", ""]
    with redirect_stdout(terminal):
        echo("the end")
    assert terminal.screen == ["RPR-0001 clean", "the end", ""]
    assert "title" not in terminal.getvalue()


def test_it_spins_without_being_called(terminal: Terminal) -> None:
    deadline = time.monotonic() + 30
    with LiveLine(terminal, 80, hidden=False):
        while "/" not in terminal.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("width", [1, 10, 40])
def test_it_never_fills_the_last_column(width: int, terminal: Terminal) -> None:
    line = LiveLine(terminal, width, hidden=False)
    with line:
        line.describe("x" * 100)
    drawn = re.split(re.escape(ERASE), terminal.getvalue())
    assert max(map(len, drawn)) == width - 1


def test_a_terminal_that_is_gone_ends_the_next_output_and_not_the_line() -> None:
    line = LiveLine(GoneTerminal(), 80, hidden=False)
    with redirect_stdout(GoneTerminal()), line:
        line.describe("RPR-0001")
        with pytest.raises(OutputError, match="Input/output error"):
            echo("RPR-0001 clean")
    assert LiveLine.current is None


def progress_on(stream: io.StringIO, folder: Path, *, quiet: bool = False) -> None:
    """Show a line of progress on a stream."""
    with redirect_stdout(stream):
        page = console()
        with LiveReporter(page, folder / "results.jsonl", append=False, verbose=False, quiet=quiet) as reporter:
            reporter.report_progress("making the environment")


def test_a_run_on_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    progress_on(terminal, tmp_path)
    assert f"{ERASE}| probing the environment 0:00:00{ERASE}" in terminal.getvalue()
    assert terminal.screen == ["\x1b[2mmaking the environment\x1b[0m", ""]


@pytest.mark.parametrize(("quiet", "term"), [(True, "xterm"), (False, "dumb")])
def test_no_line_for_a_quiet_run_or_on_a_terminal_without_control_sequences(
    quiet: bool, term: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERM", term)
    progress_on(terminal, tmp_path, quiet=quiet)
    assert terminal.getvalue() == ("" if quiet else "making the environment\n")


def test_no_line_in_a_log_that_forces_colours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    progress_on(log, tmp_path)
    assert log.getvalue() == "\x1b[2mmaking the environment\x1b[0m\n"
