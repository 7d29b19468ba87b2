"""`repros new`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from repros.model.settings import CATALOGUE
from tests.cli.command import Command


def test_new(repros: Command, here: Path) -> None:
    code, out, _ = repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    assert (code, out) == (
        0,
        "toys/it_breaks.py\nEdit it, and check it:\n  repros check it_breaks --catalogue .\n",
    )
    assert repros("show", "it_breaks", "--catalogue", ".")[0] == 0
    assert repros("new", "it_breaks", "--family", "toys", "--catalogue", ".") == (
        2,
        "",
        "repros: toys/it_breaks.py already exists; choose another name, or edit that file.\n",
    )


def test_from_a_filled_form(repros: Command, here: Path) -> None:
    (here / "issue.md").write_text(
        "### Title\n\nIt breaks, twice\n\n### Family\n\ntoys\n\n### Processes\n\ntwo\n\n### Deadline\n\n_No response_\n"
    )
    assert repros("new", "--from-issue", "issue.md", "--catalogue", ".") == (
        0,
        "toys/it_breaks_twice.py\nEdit it, and check it:\n  repros check it_breaks_twice --catalogue .\n",
        (
            "rejected: processes = 'two' in [tool.repro]; expected a world size from 1 to 64\n"
            'to give your ids a prefix of their own, set prefix = "ACME" in [tool.repros] of pyproject.toml\n'
        ),
    )
    assert repros("show", "it_breaks_twice", "--catalogue", ".")[1].startswith("LOCAL-0001 It breaks, twice\n")
    assert repros("new", "again", "--from-issue", "issue.md", "--family", "other", "--catalogue", ".")[0] == 0
    assert (here / "other/again.py").is_file()


def test_bytes_that_are_no_text_are_left_out(repros: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = b"### Title\n\nIt breaks \xed\xb2\x80\xff\n\n### Family\n\ntoys\n\n### Symptom\n\n\xff it broke\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(form.decode("utf-8", "surrogateescape")))
    code, out, _ = repros("new", "--from-issue", "-", "--catalogue", ".")
    assert (code, out.splitlines()[0]) == (0, "toys/it_breaks.py")
    assert '# title = "It breaks"\n' in (here / "toys/it_breaks.py").read_text("utf-8")


def test_a_family_that_the_package_lacks_is_refused_before_anything_is_written(repros: Command) -> None:
    code, out, err = repros("new", "it_breaks", "--family", "dataset", "--catalogue", str(CATALOGUE))
    assert (code, out) == (2, "")
    assert err.startswith("repros: 'dataset' is not a family of the catalogue; choose one with --family, ")
    assert not (CATALOGUE / "dataset").exists()
