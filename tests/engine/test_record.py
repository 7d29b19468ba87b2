"""Results survive: several writers, killed ones, damaged lines."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import record
from repros.model import Ending, Repeats, Result, Verdict
from tests.factories import cell, environment, observation, process


def result(reason: str = "rank 1 showed the documented signature") -> Result:
    seen = observation(process(0), process(1, Ending.RAISED), seconds=12.3456)
    return Result(cell(), Verdict.REPRODUCED, reason, "RuntimeError: the documented failure", seen)


def test_one_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.platform", lambda: "Linux-6")
    assert record.line(result()) == {
        "schema": 1,
        "repro": "RPR-0001",
        "title": "A toy",
        "variant": "failing",
        "claim": None,
        "strategy": "ddp",
        "device": "cpu",
        "stack": {"name": "current", "own": False, "python": "3.11.9", "versions": {"torch": "2.13.0+cpu"}},
        "platform": "Linux-6",
        "processes": 2,
        "expected": {
            "outcome": "fails",
            "affected": True,
            "signature": "RuntimeError: the documented failure",
        },
        "launch": "cold",
        "observed": [
            {"process": "rank 0", "ending": "returned", "code": None, "signal": None},
            {"process": "rank 1", "ending": "raised", "code": None, "signal": None},
        ],
        "signature": "RuntimeError: the documented failure",
        "verdict": "reproduced",
        "repeats": None,
        "reason": "rank 1 showed the documented signature",
        "seconds": 12.35,
        "logs": "/nowhere/cell",
    }


def test_a_cell_that_was_not_run() -> None:
    skipped = Result(cell(environment=environment(broken="no")), Verdict.UNAVAILABLE, "needs g++")
    found = record.line(skipped)
    assert (found["verdict"], found["reason"], found["seconds"], found["logs"], found["observed"]) == (
        "unavailable",
        "needs g++",
        None,
        None,
        [],
    )


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "results.jsonl"
    for reason in ("one", "zwei ✓", "a\nb", "lone \udcff surrogate"):
        record.append(out, result(reason))
    assert [line["reason"] for line in record.read(out)] == ["one", "zwei ✓", "a\nb", "lone \udcff surrogate"]
    assert len(out.read_bytes().splitlines()) == 4


def test_a_half_written_line_spoils_only_itself(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    record.append(out, result("one"))
    whole = out.read_bytes()
    out.write_bytes(whole + whole[: len(whole) // 2])
    record.append(out, result("two"))
    assert [line["reason"] for line in record.read(out)] == ["one", "two"]
    assert out.read_bytes().count(b"\n") == 3


def test_repeats_are_counted() -> None:
    repeated = replace(result(), repeats=Repeats(20, 19))
    assert record.line(repeated)["repeats"] == {"n": 20, "agreeing": 19}


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "results.jsonl"
    record.append(out, result("one"))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            record.append(out, result("two"))
    record.append(out, result("three"))
    assert [line["reason"] for line in record.read(out)] == ["one", "three"]
    assert out.read_bytes().count(b"\n") == 2


def test_damaged_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    whole = record.line(result())
    foreign = [
        b"",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'{"schema": 99}',
        b'{"schema": 1, "verdict": "clean"}',
        json.dumps(dict(whole, verdict="a later one")).encode(),
        json.dumps(whole).encode(),
        b"{",
    ]
    out.write_bytes(b"\n".join(foreign))
    assert list(record.read(out)) == [json.loads(json.dumps(whole))]


def write_many(out: Path, writer: int, count: int) -> None:
    for number in range(count):
        record.append(out, result(f"{writer} {number} " + "x" * 5000))


def test_several_processes_append_to_one_file(tmp_path: Path) -> None:
    out, spawn = tmp_path / "results.jsonl", multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_many, args=(out, number, 25)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    found = [line["reason"].split()[:2] for line in record.read(out)]
    assert len(found) == 100
    assert len(out.read_bytes().splitlines()) == 100
    for number in range(4):  # each writer's in its own order
        assert [n for w, n in found if w == str(number)] == [str(n) for n in range(25)]


def test_a_killed_writer_leaves_whole_lines_and_no_lock(tmp_path: Path) -> None:
    out, spawn = tmp_path / "results.jsonl", multiprocessing.get_context("spawn")
    writer = spawn.Process(target=write_many, args=(out, 0, 100_000))
    writer.start()
    patience = time.monotonic() + 60
    while not (out.exists() and out.stat().st_size > 50_000) and time.monotonic() < patience:
        time.sleep(0.01)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(60)
    before = len(list(record.read(out)))
    record.append(out, result("after"))
    found = [line["reason"] for line in record.read(out)]
    assert before > 0
    assert len(found) == before + 1
    assert found[-1] == "after"
    lines = out.read_bytes().splitlines()
    assert len(lines) - len([line for line in lines if _is_json(line)]) <= 1


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
