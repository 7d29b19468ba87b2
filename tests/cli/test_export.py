"""`repros export`: a file, or stdout; a file is overwritten only with --force."""

from __future__ import annotations

import json
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from tests.cli.command import Command
from tests.factories import VALID
from tests.transcript import transcript

CODE = """
import sys

import torch


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    print(variant, strategy, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
"""
"""Behind a header that names `cuda` alone."""


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    (here / "own.py").write_text(VALID + CODE, "utf-8")
    own = "export RPR-0001 --catalogue own.py --stack 2023-12 -o -"
    assert snapshot == transcript(repros, "export RPR-0005", "export RPR-0001 --osv", own)


def test_a_script_is_pinned_and_kept(repros: Command, here: Path) -> None:
    assert repros("export", "RPR-0005")[0] == 0
    text = (here / "rpr_0005.py").read_text()
    assert '#     "lightning==2.1.3",\n' in text
    fixed = repros("export", "RPR-0005", "--variant", "fixed", "-o", "-")[1]
    assert fixed == text.replace('def main(variant="failing"', 'def main(variant="fixed"').replace(
        "it runs 'failing'", "it runs 'fixed'"
    )
    assert repros("export", "RPR-0005")[0] == 2
    assert (here / "rpr_0005.py").read_text() == text
    assert repros("export", "RPR-0005", "--stack", "current", "--force")[0] == 0
    assert "stack current" in (here / "rpr_0005.py").read_text()


def test_an_osv_record(repros: Command, here: Path) -> None:
    assert repros("export", "RPR-0001", "--osv")[0] == 0
    record = json.loads((here / "x_RPR-0001.json").read_text())
    assert record["id"] == "x_RPR-0001"
    assert record["affected"][0]["ranges"][0]["events"] == [{"introduced": "2.1"}, {"fixed": "2.4"}]
    assert json.loads(repros("export", "RPR-0001", "--osv", "-o", "-")[1]) == record
    assert repros("export", "RPR-0001", "--osv")[0] == 2
