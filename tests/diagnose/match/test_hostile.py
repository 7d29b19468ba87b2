"""Logs made to exhaust memory, time or the reader: each is bounded, whatever the input."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from repros.diagnose.match import find, log, match_log
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.text import format_match
from tests.package_catalogue import load_index

SIZE = 2_400_000
"""Bytes of most logs: more lines than are read, if they are short. test_properties shows that the cost is linear."""
PYTHON_S_MEMORY = 45 * 2**20
"""Bytes of memory that one run may take, and seven times the log."""
MOST_SECONDS = 24
"""Seconds of processor time of one run: three times what the slowest of these takes on two busy processors."""

LONG: dict[str, Callable[[], bytes]] = {
    "line ends": lambda: b"\n" * 4_000_000 + b"x",
    "returns": lambda: b"a\r" * (SIZE // 2),
    "exceptions": lambda: b"".join(b"RuntimeError: boom %d\n" % number for number in range(SIZE // 26)),
    "ranks": lambda: b"".join(b"[rank%d]: RuntimeError: boom\n" % number for number in range(SIZE // 33)),
    "frames": lambda: b"Traceback (most recent call last):\n" + b'  File "a", line 1, in f\n' * (SIZE // 25),
    "wide characters": lambda: ("\N{GRINNING FACE}" * 20 + "\n").encode() * (SIZE // 81),
    "UTF-16": lambda: ("RuntimeError: boom\n" * (SIZE // 38)).encode("utf-16"),
    "versions": lambda: b"".join(b"torch==2.%d.1\n" % number for number in range(SIZE // 18)),
    "one line": lambda: b"x" * SIZE,
}


@pytest.mark.long(keep=2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_memory_and_time_are_bounded(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.log"
    file.write_bytes(LONG[kind]())

    most_memory = PYTHON_S_MEMORY + 7 * file.stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    run = subprocess.run(
        [sys.executable, "-m", "repros", "match", str(file)],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith("No documented failure")
    assert len(run.stdout) < 10_000


def test_of_many_lines_the_last_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_LINES", 3)
    decoded = decode_lines(b"one\ntwo\rthree\nfour\nfive")
    assert list(decoded) == [(1, "three"), (2, "four"), (3, "five")]
    (note,) = decoded.notes
    assert "3" in note


@pytest.mark.parametrize("raw", [b"one\ntwo\nthree", b"one\r\ntwo\r", b"one\rtwo\n"])
def test_no_note_on_lines_if_all_are_read(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_LINES", 4)
    assert decode_lines(raw).notes == ()


def test_a_sequence_that_is_not_closed_takes_its_own_line_only() -> None:
    lines = list(decode_lines(b"a\x1b]0;title\nRuntimeError: one\n\x1b]two\x07 b"))
    assert lines == [(1, "a"), (2, "RuntimeError: one"), (3, " b")]


def test_many_ranks_are_counted_and_not_listed() -> None:
    text = "".join(f"[rank{number}]: RuntimeError: boom\n" for number in range(2_000))
    found = match_log(decode_lines(text.encode()), load_index())
    assert len(found.failures[0].labels) == 2_000
    report = " ".join(format_match(found, 80).plain.split())
    assert "line 1, rank 0, rank 1, rank 2, rank 3, ... (2,000 in all): RuntimeError: boom" in report


def test_a_writer_that_was_forgotten_keeps_its_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MOST_WRITERS", 2)
    text = "".join(f"[rank{number}]: ValueError: {number}\n" for number in range(5))
    found = match_log(decode_lines(text.encode()), load_index())
    assert [(failure.labels, failure.links[0].line) for failure in found.failures] == [
        ((f"rank{number}",), number + 1) for number in range(5)
    ]
