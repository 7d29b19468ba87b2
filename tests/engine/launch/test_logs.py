from __future__ import annotations

from pathlib import Path

import pytest

from repros.engine.launch import logs


def test_a_log_within_the_cap_is_not_changed(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"x" * logs.CAP)
    logs.trim(tmp_path)
    logs.compact(tmp_path)
    assert log.stat().st_size == logs.CAP


def test_a_log_past_the_cap_keeps_its_head_and_tail(tmp_path: Path) -> None:
    rank = tmp_path / "processes" / "11" / "log.txt"
    rank.parent.mkdir(parents=True)
    lines = [f"line {number:06}\n" for number in range(300_000)]
    rank.write_text("".join(lines))
    logs.compact(tmp_path)
    text = rank.read_text()
    assert len(text) < 400_000
    assert text.startswith("line 000000\nline 000001\n")
    assert text.endswith("line 299998\nline 299999\n")
    assert "\n[... 3,300,000 bytes left out ...]\n" in text


def test_lines_written_while_a_log_is_trimmed_are_not_lost(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    with log.open("ab", buffering=0) as writer:
        for _ in range(3):
            writer.write(b"x" * (2 * logs.CAP))
            logs.trim(tmp_path)
            assert log.stat().st_blocks * 512 < logs.CAP
            writer.write(b"\nafter the cut\n")
    assert logs.tail(tmp_path, log, 1) == ["after the cut"]
    logs.compact(tmp_path)
    assert log.read_bytes().endswith(b"x\nafter the cut\n")
    assert b"\0" not in log.read_bytes()
    assert log.stat().st_size < logs.CAP


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"one\ntwo\n\xff three")
    assert logs.tail(tmp_path, log, 2) == ["two", "\ufffd three"]
    assert logs.tail(tmp_path, None) == logs.tail(tmp_path, tmp_path / "none.log") == []


def test_a_folder_without_logs_is_not_an_error(tmp_path: Path) -> None:
    logs.trim(tmp_path)
    logs.compact(tmp_path)


def test_logs_that_are_together_too_long_are_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CAP", 1_000)
    monkeypatch.setattr(logs, "_MOST_OF_RUN", 2_500)
    files = [tmp_path / f"{number}.log" for number in range(4)]
    for file in files:
        file.write_bytes(b"x" * 5_000)
    assert [len(text) > 1_000 for text in logs.read(tmp_path, files)] == [True, True, False, False]
