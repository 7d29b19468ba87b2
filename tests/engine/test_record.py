"""Results files: format, several writers, killed writers, damaged lines."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

import jsonschema
import pytest

from repros.engine import cells, record
from repros.engine.digest.inputs import PACKAGE
from repros.engine.header import keys
from repros.engine.judge import combine, judge
from repros.model import Cell, CellResult, Device, Ending, ExpectedOutcome, Launch, Repeats, Unavailable, Verdict
from tests.factories import cell, conditions, environment, observation, process, raised, variant


def result(reason: str = "the judge's reason") -> CellResult:
    seen = observation(process(0, processor=2.0), process(1, Ending.RAISED, processor=0.5), seconds=12.3456)
    return CellResult(cell(), Verdict.REPRODUCED, reason, "RuntimeError: the documented failure", seen)


def test_a_complete_line(monkeypatch: pytest.MonkeyPatch) -> None:
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
        "reason": "the judge's reason",
        "seconds": 12.35,
        "processor": 2.5,
        "logs": "/nowhere/cell",
    }


def test_the_line_of_a_cell_that_was_not_run() -> None:
    skipped = CellResult(cell(environment=environment(broken="no")), Verdict.UNAVAILABLE, "needs g++")
    found = record.line(skipped)
    assert (found["verdict"], found["reason"], found["observed"]) == ("unavailable", "needs g++", [])
    assert (found["seconds"], found["processor"], found["logs"]) == (None, None, None)


JSON_SCHEMA: dict[str, Any] = json.loads(record.JSON_SCHEMA.read_text(encoding="utf-8"))


def judge_runs(wanted: Cell, *endings: Ending, **given: Any) -> CellResult:
    """Return the result of a run whose rank 1 ends like this; of repeats, if several endings are given."""
    details: dict[Ending, dict[str, Any]] = {Ending.EXITED: {"code": 3}, Ending.SIGNALLED: {"signal": "SIGSEGV"}}
    runs = [
        observation(process(0, world_size=2), process(1, ending, world_size=2, **details.get(ending, {})), **given)
        for ending in endings
    ]
    results = [judge(wanted, run) for run in runs]
    return results[0] if len(results) == 1 else combine(results)


FAILS, FIX = cell(ExpectedOutcome.FAILS), cell(ExpectedOutcome.PASSES, device=Device.SIM)
OUTSIDE = cell(variant=variant(affected=conditions("torch<2"), claim="a promise"), device=Device.CUDA)
OTHER = process(1, Ending.RAISED, chain=(raised("quite another failure"),))
RESULTS = {
    Verdict.REPRODUCED: judge_runs(FAILS, Ending.RAISED),
    Verdict.CLEAN: judge_runs(FIX, Ending.RETURNED, launch=Launch.WARM),
    Verdict.GONE: judge_runs(FAILS, Ending.RETURNED),
    Verdict.REGRESSED: judge_runs(OUTSIDE, Ending.RAISED),
    Verdict.UNFIXED: judge_runs(FIX, Ending.RAISED),
    Verdict.DIFFERENT: judge(FAILS, observation(process(0), OTHER)),
    Verdict.FLAKY: judge_runs(FAILS, Ending.RAISED, Ending.RETURNED, Ending.RAISED),
    Verdict.UNAVAILABLE: cells.run_cell(Unavailable(FAILS, "needs g++"), Path("/nowhere")),
    Verdict.INFRA: judge_runs(FAILS, Ending.RAISED, broken="interrupted"),
}


def problems(line: object) -> list[str]:
    """Return where a line, read back from JSON, does not fit the schema."""
    validator = jsonschema.Draft202012Validator(JSON_SCHEMA)
    return [error.json_path for error in validator.iter_errors(json.loads(json.dumps(line)))]


@pytest.mark.parametrize("verdict", Verdict)
def test_the_line_of_every_verdict_fits_the_schema(verdict: Verdict) -> None:
    assert RESULTS[verdict].verdict is verdict
    assert problems(record.line(RESULTS[verdict])) == []


@pytest.mark.parametrize("ending", Ending)
def test_the_line_of_every_ending_fits_the_schema(ending: Ending) -> None:
    line = record.line(judge_runs(FAILS, ending))
    assert line["observed"][1]["ending"] == ending
    assert problems(line) == []


def test_a_line_of_a_users_own_environment_fits_the_schema() -> None:
    line = record.line(replace(RESULTS[Verdict.GONE], cell=cell(environment=environment("/nowhere/bin/python"))))
    assert line["stack"]["own"]
    assert problems(line) == []


def test_a_line_of_a_private_catalogue_fits_the_schema_and_is_read(tmp_path: Path) -> None:
    line = {**record.line(RESULTS[Verdict.GONE]), "repro": "OURS-0001"}
    assert problems(line) == []
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(line)}\n", encoding="utf-8")
    assert [*record.read(tmp_path / "results.jsonl")] == [line]


@pytest.mark.parametrize("schema", ["engine/record", "diagnose/watch/finding"])
def test_a_schema_takes_the_ids_that_a_header_may_have(schema: str) -> None:
    text = (PACKAGE / f"{schema}.schema.json").read_text(encoding="utf-8")
    assert re.findall(r'"pattern": "(.*)"', text) == [f"^{keys._ID.pattern}$"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"verdict": "a later one"}, "$.verdict"),
        ({"surplus": 1}, "$"),
        ({"schema": record.SCHEMA + 1}, "$.schema"),
        ({"repeats": {"n": 3}}, "$.repeats"),
        ({"observed": [{"process": "rank 0"}]}, "$.observed[0]"),
    ],
)
def test_a_line_that_does_not_follow_the_format_does_not_fit_the_schema(changes: dict[str, Any], place: str) -> None:
    assert place in problems({**record.line(result()), **changes})


def compare_with_schema(kind: Any, schema: dict[str, Any]) -> list[str]:
    """Check that a schema has the keys of a TypedDict, at every depth; return the names of the TypedDicts."""
    assert schema["properties"].keys() == kind.__annotations__.keys()
    hints = get_type_hints(kind, include_extras=True)
    assert schema["required"] == [key for key, hint in hints.items() if get_origin(hint) is not NotRequired]
    assert schema["additionalProperties"] is False
    compared = [kind.__name__]
    for key, hint in get_type_hints(kind).items():
        inner = next((part for part in (hint, *getattr(hint, "__args__", ())) if is_typeddict(part)), None)
        if inner is not None:
            objects = find_objects(schema["properties"][key])
            assert len(objects) == 1
            compared += compare_with_schema(inner, objects[0])
    return compared


def find_objects(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the outermost objects with properties in a part of a schema."""
    if "properties" in schema:
        return [schema]
    inner = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    return [found for part in inner for found in find_objects(part)]


def test_the_schema_has_the_keys_of_the_types() -> None:
    compared = compare_with_schema(record.RecordLine, JSON_SCHEMA)
    assert compared == ["RecordLine", "StackRecord", "ExpectationRecord", "ProcessRecord", "RepeatsRecord"]


def test_the_schema_has_the_values_of_the_enums() -> None:
    keys = JSON_SCHEMA["properties"]
    assert keys["schema"]["const"] == record.SCHEMA
    assert keys["verdict"]["enum"] == list(Verdict)
    assert keys["device"]["enum"] == list(Device)
    assert keys["launch"]["enum"] == [*Launch, None]
    assert keys["expected"]["properties"]["outcome"]["enum"] == list(ExpectedOutcome)
    assert keys["observed"]["items"]["properties"]["ending"]["enum"] == list(Ending)


def test_appended_lines_are_read_back(tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "results.jsonl"
    for reason in ("one", "zwei ✓", "a\nb", "lone \udcff surrogate"):
        record.append(out, result(reason))
    assert [line["reason"] for line in record.read(out)] == ["one", "zwei ✓", "a\nb", "lone \udcff surrogate"]
    assert len(out.read_bytes().splitlines()) == 4


def test_only_an_incomplete_line_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    record.append(out, result("one"))
    whole = out.read_bytes()
    out.write_bytes(whole + whole[: len(whole) // 2])
    record.append(out, result("two"))
    assert [line["reason"] for line in record.read(out)] == ["one", "two"]
    assert out.read_bytes().count(b"\n") == 3


def test_a_line_has_the_counts_of_repeats() -> None:
    repeated = replace(result(), repeats=Repeats(20, 19))
    assert record.line(repeated)["repeats"] == {"n": 20, "agreeing": 19}


def test_a_full_disk_leaves_no_incomplete_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "results.jsonl"
    record.append(out, result("one"))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(record.NotRecordedError, match=r"RPR-0001 .*No space left"):
            record.append(out, result("two"))
    record.append(out, result("three"))
    assert [line["reason"] for line in record.read(out)] == ["one", "three"]
    assert out.read_bytes().count(b"\n") == 2


def test_damaged_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
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


@pytest.mark.slow
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
    for number in range(4):  # each writer's lines are in order
        assert [n for w, n in found if w == str(number)] == [str(n) for n in range(25)]


def test_a_killed_writer_leaves_complete_lines_and_no_lock(tmp_path: Path) -> None:
    out, spawn = tmp_path / "results.jsonl", multiprocessing.get_context("spawn")
    writer = spawn.Process(target=write_many, args=(out, 0, 100_000))
    writer.start()
    until = time.monotonic() + 60
    while not (out.exists() and out.stat().st_size > 50_000) and time.monotonic() < until:
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
