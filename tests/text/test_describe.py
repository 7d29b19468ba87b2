"""The description of a repro; `tests/cli/test_show.py` has the whole text."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.engine import header
from repros.text.describe import describe
from tests.factories import VALID


def test_no_line_is_wider_than_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "slug.py"
    script.write_text(f"{VALID}\ndef failing():\n    find()\n\n\ndef fixed():\n    fit()\n", encoding="utf-8")
    lines = describe(header.read(script), 60).plain.splitlines()
    # Addresses and commands are never broken, since readers copy them.
    assert [line for line in lines if len(line) > 60 and "https://" not in line and "repros run" not in line] == []
    assert "  -    find()" in lines


def test_a_docstring_without_labels_is_shown_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "slug.py"
    body = VALID[: VALID.index('"""Symptom')] + '"""It fails.\n\nSometimes.\n"""\n'
    script.write_text(
        body.replace("processes = 2", "processes = 1").replace("minimum = 1", "silent = true"),
        encoding="utf-8",
    )
    shown = describe(header.read(script), 80).plain
    assert "\n\nIt fails.\n\nSometimes.\n\n" in shown
    assert "@@" not in shown, "without functions there is no difference"
