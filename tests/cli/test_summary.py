"""`repros summary`: the table of a results file, and JSON."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import RAISES, Command
from tests.transcript import transcript


def test_summary_prints_the_table_of_the_run(repros: Command) -> None:
    _, out, _ = repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--json", "mine.jsonl")
    table = out[out.index("  variant") : out.index("results:")]
    assert repros("summary", "mine.jsonl") == (0, table, "")
    repros(
        "run",
        "--python",
        "python",
        "--catalogue",
        RAISES,
        "--variant",
        "gone",
        "--results",
        "mine.jsonl",
        "--append",
    )
    assert repros("summary", "mine.jsonl")[0] == 1
    assert [line["verdict"] for line in json.loads(repros("summary", "mine.jsonl", "--json")[1])] == ["clean", "gone"]


DAMAGE: dict[str, object] = {
    "title": [], "variant": {}, "claim": 1, "strategy": None, "device": "tpu", "stack": {"name": "x"}, "platform": 3,
    "processes": "2", "expected": "fails", "launch": 1, "observed": [1], "signature": [], "verdict": {}, "repeats": 1,
    "reason": None, "seconds": "1", "logs": [], "repro": 5,
}  # fmt: skip


@pytest.mark.parametrize("key", DAMAGE)
def test_a_line_of_wrong_types_is_passed_over(key: str, repros: Command, here: Path) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--json", "mine.jsonl")
    file = here / "mine.jsonl"
    (line,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    whole = repros("summary", "mine.jsonl")
    other = json.dumps(line | {key: DAMAGE[key]})
    file.write_text(f"{json.dumps(line)}\n{other}\n" + "[" * 100_000 + "\n", encoding="utf-8")
    assert repros("summary", "mine.jsonl") == whole
    assert "Traceback" not in repros("report", "RPR-9001", "--catalogue", RAISES, "--results", "mine.jsonl")[2]
    file.write_text(f"{other}\n", encoding="utf-8")
    assert repros("summary", "mine.jsonl")[0] == 2


@pytest.mark.slow
def test_the_last_line_of_each_cell_is_kept_while_reading(repros: Command, here: Path) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--json", "mine.jsonl")
    file = here / "mine.jsonl"
    line = file.read_bytes()
    whole = repros("summary", "mine.jsonl")
    with file.open("wb") as out:
        for _ in range(4_000_000 // len(line)):
            out.write(line)
    tracemalloc.start()
    assert repros("summary", "mine.jsonl") == whole
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_as_json(repros: Command) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "gone")
    code, out, _ = repros("summary", "--json")
    assert code == 1
    assert [(line["variant"], line["verdict"]) for line in json.loads(out)] == [("gone", "gone")]


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    for variant in ("fixed", "gone"):
        repros("run", "--python", "/x/venv/bin/python", "--catalogue", RAISES, "--variant", variant, "--append", "-q")
    file = here / ".repros/latest.jsonl"
    file.write_text(re.sub('"reason": "returned[^"]*"', '"reason": "because"', file.read_text()))  # a sentence of `run`
    assert snapshot == transcript(repros, "summary", "summary --quiet", "summary --strategy fsdp --allow-empty --quiet")
    assert repros("summary", "--strategy", "plain", "--device", "cpu") == repros("summary")
    nothing = repros("summary", "--strategy", "fsdp", "--allow-empty", "--quiet")
    file.write_text("")
    assert repros("summary", "--allow-empty", "--quiet") == nothing
    assert repros("summary", "--quiet", "--verbose")[0] == 2
