"""`repros check` before anything runs; the example project runs the rest."""

from __future__ import annotations

import re
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from tests.cli.command import Command
from tests.transcript import refusals, transcript


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    assert snapshot == transcript(
        repros, "check it_breaks --catalogue . --rules", "check it_breaks --catalogue .", "check RPR-0025 --rules"
    )
    assert [path.name for path in here.rglob("*") if path.is_file()] == ["it_breaks.py"], "open rules stop the check"


def test_several_scripts_are_named_in_each_sentence(repros: Command, here: Path) -> None:
    for slug in ("it_breaks", "it_breaks_too"):
        repros("new", slug, "--family", "toys", "--catalogue", ".")
    code, out, _ = repros("check", "it_breaks", "LOCAL-0002", "LOCAL-0001", "--catalogue", ".", "--rules")
    assert code == 1
    assert re.findall(r"^  [a-z ]+: (LOCAL-\d+)", out, re.MULTILINE) == ["LOCAL-0001"] * 8 + ["LOCAL-0002"] * 8


def test_a_wrong_value_in_the_table_of_steps_is_refused(
    repros: Command, here: Path, snapshot: SnapshotAssertion
) -> None:
    repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    (here / "pyproject.toml").write_text("[tool.repros]\ncheck = 3\n", "utf-8")
    assert snapshot == refusals(repros, "check it_breaks --catalogue .", here=here)
