from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from repros.diagnose.match import log
from repros.diagnose.match.log import decode_lines, read_file, read_stream
from repros.model.errors import ReprosError


@pytest.mark.parametrize(
    ("raw", "expected"),
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
def test_terminal_escapes_are_removed(raw: bytes, expected: list[str]) -> None:
    assert [text for _, text in decode_lines(raw)] == expected


def test_parts_between_carriage_returns_share_a_line_number() -> None:
    lines = list(decode_lines(b"a\n50%\r60%\rdone\r\nz"))
    assert lines == [(1, "a"), (2, "50%"), (2, "60%"), (2, "done"), (3, "z")]


@pytest.mark.parametrize("raw", [b"", b"\n \r\n\t\n"])
def test_an_empty_log_is_refused(raw: bytes) -> None:
    with pytest.raises(ReprosError, match=r"^train\.log "):
        decode_lines(raw, "train.log")


def test_a_binary_is_refused() -> None:
    with pytest.raises(ReprosError, match=r"^a\.out "):
        decode_lines(bytes(range(256)) * 40, "a.out")


def test_zeros_within_a_log_do_not_make_it_binary() -> None:
    """A machine that crashes leaves zeros in a file that was being written; the text around them is read."""
    lines = list(decode_lines(b"step 1\n" * 50 + b"\0" * 30 + b"\nRuntimeError: x"))
    assert lines[-1] == (52, "RuntimeError: x")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log").write_bytes(b"one")
    assert read_file(Path("log")) == b"one"
    for name in (".", "none"):
        with pytest.raises(ReprosError, match=rf"^{re.escape(name)} "):
            read_file(Path(name))


def test_only_the_end_of_a_long_log_is_read_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_BYTES", 2**20)
    raw = read_stream(io.BytesIO(b"first\n" + b"x" * (5 * 2**20) + b"\nlast"))
    assert 2**20 < len(raw) <= 2**21
    decoded = decode_lines(raw)
    first, last = decoded
    assert last == (2, "last")
    assert ["1 MB" in decoded.notes[0], "20,000" in decoded.notes[1]] == [True, True]
    assert len(first[1]) == 20_000


@pytest.mark.parametrize("block", [1, 7, 64])
def test_lines_do_not_depend_on_where_a_block_ends(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lines of a log are decoded a block at once: as soon as one is long or has parts, each on its own."""
    raw = (
        b"one\n\x1b[1mtwo\x1b[0m\n\ntr\xc3\xa4in\n\xc3\n\xe2\x82\n[0;31mx\n50%\r60%\rdone\r\nlong "
        + b"x" * 90
        + b"\nend"
    )
    expected = list(decode_lines(raw))
    assert [number for number, _ in expected] == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9, 10]
    monkeypatch.setattr(log, "_BLOCK", block)
    assert list(decode_lines(raw)) == expected
