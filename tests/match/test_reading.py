from __future__ import annotations

import io
from pathlib import Path

import pytest

from repros.match import reading
from repros.match.reading import UnreadableLogError, drain, lines, load


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two", ""]),
        (b"\xef\xbb\xbfone", ["one"]),
        ("one\ntwo".encode("utf-16"), ["one", "two"]),
        (b"one \xff two", ["one \ufffd two"]),
        (b"\x1b[1;31mone\x1b[0m \x1b]0;title\x07two\x1b[K", ["one two"]),
        (b"[0;31mone[0m two [m", ["one two "]),
        (b"list[3] and [31] stay, [rank1]: too", ["list[3] and [31] stay, [rank1]: too"]),
    ],
)
def test_lines_without_colours(raw: bytes, read: list[str]) -> None:
    assert [text for _, text in lines(raw)] == read


def test_what_a_carriage_return_overwrites_has_the_number_of_its_line() -> None:
    assert lines(b"a\n50%\r60%\rdone\r\nz").lines == ((1, "a"), (2, "50%"), (2, "60%"), (2, "done"), (3, "z"))


@pytest.mark.parametrize("raw", [b"", b"\n \r\n\t\n"])
def test_an_empty_log_is_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableLogError) as caught:
        lines(raw, "train.log")
    assert str(caught.value) == "train.log is empty; expected the text of a log or a traceback."


def test_a_binary_is_refused() -> None:
    with pytest.raises(UnreadableLogError, match=r"^a\.out is not text; expected the text of a log or a traceback\.$"):
        lines(bytes(range(256)) * 40, "a.out")


def test_a_hole_in_a_log_is_none() -> None:
    """A machine that dies leaves zeros in a file that was being written; what stands round them is read."""
    assert lines(b"step 1\n" * 50 + b"\0" * 30 + b"\nRuntimeError: x").lines[-1] == (52, "RuntimeError: x")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one")
    assert load(tmp_path / "log") == b"one"
    with pytest.raises(UnreadableLogError, match=r"is a folder; expected the text of a log"):
        load(tmp_path)
    with pytest.raises(UnreadableLogError, match=r"none cannot be read \(No such file or directory\); expected"):
        load(tmp_path / "none")


def test_of_a_long_log_the_end_is_read_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 2**20)
    raw = drain(io.BytesIO(b"first\n" + b"x" * (5 * 2**20) + b"\nlast"))
    assert 2**20 < len(raw) <= 2**21
    read = lines(raw)
    assert read.lines[-1] == (2, "last")
    assert read.notes == (
        "Only the last 1 MB of the log were read; line numbers count from there.",
        "Of lines longer than 20,000 characters (1) only so much was read.",
    )
    assert len(read.lines[0][1]) == 20_000
