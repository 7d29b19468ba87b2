"""`repros new`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.model.settings import CATALOGUE
from tests.cli.command import Command
from tests.transcript import transcript


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    (here / "issue.md").write_text(
        "### Title\n\nIt breaks, twice\n\n### Family\n\ntoys\n\n### Processes\n\ntwo\n\n### Deadline\n\n_No response_\n"
    )
    assert snapshot == transcript(
        repros, "new it_breaks --family toys --catalogue .", "new --from-issue issue.md --catalogue ."
    )
    assert sorted(file.name for file in (here / "toys").iterdir()) == ["it_breaks.py", "it_breaks_twice.py"]
    shown = [json.loads(repros("show", name, "--catalogue", ".", "--json")[1]) for name in ("it_breaks", "LOCAL-0002")]
    assert [one["slug"] for one in shown] == ["it_breaks", "it_breaks_twice"]
    assert repros("new", "again", "--from-issue", "issue.md", "--family", "other", "--catalogue", ".")[0] == 0
    assert (here / "other/again.py").is_file()


def test_bytes_that_are_no_text_are_left_out(repros: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = b"### Title\n\nIt breaks \xed\xb2\x80\xff\n\n### Family\n\ntoys\n\n### Symptom\n\n\xff it broke\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(form.decode("utf-8", "surrogateescape")))
    code, out, _ = repros("new", "--from-issue", "-", "--catalogue", ".")
    assert (code, out.splitlines()[0]) == (0, "toys/it_breaks.py")
    assert '# title = "It breaks"\n' in (here / "toys/it_breaks.py").read_text("utf-8")


def test_a_family_that_the_package_lacks_is_refused_before_anything_is_written(
    repros: Command, snapshot: SnapshotAssertion
) -> None:
    assert snapshot == transcript(repros, f"new it_breaks --family dataset --catalogue {CATALOGUE}")
    assert not (CATALOGUE / "dataset").exists()


def test_the_folder_of_the_settings_is_made_and_a_family_is_optional(repros: Command, here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.repros]\ncatalogue = ["failures"]\nprefix = "ACME"\n', "utf-8")
    assert repros("list")[0] == 2
    code, out, _ = repros("new", "it_breaks")
    assert (code, out.splitlines()[0]) == (0, "failures/it_breaks.py")
    assert json.loads(repros("show", "it_breaks", "--json")[1])["id"] == "ACME-0001"
    assert repros("check", "it_breaks", "--rules")[0] == 1, "its rules are open"
