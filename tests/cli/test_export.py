"""`repros export`: a file, or stdout; a file is overwritten only with --force."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import Command


def test_a_script(repros: Command, here: Path) -> None:
    assert repros("export", "RPR-0005") == (0, "rpr_0005.py\nRun it:\n  uv run rpr_0005.py\n", "")
    text = (here / "rpr_0005.py").read_text()
    assert "pinned to stack 2023-12, on which it was measured.\n" in text
    assert '#     "lightning==2.1.3",\n' in text
    assert repros("export", "RPR-0005", "--variant", "fixed", "-o", "-")[1] == text.replace(
        'def main(variant="failing"', 'def main(variant="fixed"'
    ).replace("it runs 'failing'", "it runs 'fixed'")
    assert repros("export", "RPR-0005") == (
        2,
        "",
        "repros: rpr_0005.py exists already; overwrite it with --force, or name another with --output.\n",
    )
    assert repros("export", "RPR-0005", "--stack", "current", "--force")[0] == 0
    assert "pinned to stack current, on which it was measured.\n" in (here / "rpr_0005.py").read_text()


def test_an_osv_record(repros: Command, here: Path) -> None:
    assert repros("export", "RPR-0001", "--osv") == (0, "x_RPR-0001.json\n", "")
    record = json.loads((here / "x_RPR-0001.json").read_text())
    assert record["id"] == "x_RPR-0001"
    assert record["affected"][0]["ranges"][0]["events"] == [{"introduced": "2.1"}, {"fixed": "2.4"}]
    assert json.loads(repros("export", "RPR-0001", "--osv", "-o", "-")[1]) == record
    assert repros("export", "RPR-0001", "--osv")[0] == 2


def test_refusals(repros: Command) -> None:
    refused = {
        "export RPR-0005 --variant fixt": "unknown variant 'fixt'; did you mean 'fixed'?",
        "export RPR-0005 --stack curent": "unknown stack 'curent'; did you mean 'current'?",
        "export RPR-0005 -o no/where.py": (
            "no/where.py cannot be written (No such file or directory); name another with --output."
        ),
        "export RPR-0005 --stack current --python x": (
            "--stack and --python exclude each other: each brings its own versions. (try 'repros export --help')"
        ),
    }
    for line, sentence in refused.items():
        assert repros(*line.split()) == (2, "", f"repros: {sentence}\n")
