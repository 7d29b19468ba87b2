"""`repros summary`: the table of a results file, and JSON."""

from __future__ import annotations

import json

from tests.cli.command import RAISES, Command


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
    code, out, _ = repros("summary", "mine.jsonl")
    assert code == 1
    assert out.endswith("1 agree, 1 news, 0 trouble\n")


def test_as_json(repros: Command) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "gone")
    code, out, _ = repros("summary", "--json")
    assert code == 1
    assert [(line["variant"], line["verdict"]) for line in json.loads(out)] == [("gone", "gone")]
