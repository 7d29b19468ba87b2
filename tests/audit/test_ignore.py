"""Decisions: with a reason, until a day, for a failure that there is."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from repros.audit.assess import assess
from repros.audit.ignore import Ignore, from_pyproject, nearest_pyproject, settled
from repros.audit.subject import AuditError, Pick, Place, Subject
from repros.audit.verdict import Audit, decide
from repros.engine.catalogue import Catalogue
from repros.errors import UnknownNameError
from tests import factories

TODAY = dt.date(2026, 11, 21)
SHELF = Catalogue((factories.repro("RPR-0001"), factories.repro("RPR-0002", packages=("lightning",))))


def decided(*ignores: Ignore) -> Audit:
    subject = Subject("x", {"torch": (Pick("2", Place("x")),)}, complete=True)
    return decide(subject, assess(SHELF, subject, {}), settled(ignores, SHELF), TODAY)


def test_counts_to_its_last_day() -> None:
    one = Ignore("RPR-0001", "why", TODAY)
    done = decided(one)
    assert [finding.repro.id for finding in done.findings] == ["RPR-0002"]
    assert [(finding.repro.id, decision) for finding, decision in done.ignored] == [("RPR-0001", one)]
    assert (done.expired, done.idle) == ((), ())


def test_no_longer_counts_afterwards() -> None:
    one = Ignore("RPR-0001", "why", TODAY - dt.timedelta(days=1))
    done = decided(one)
    assert [finding.repro.id for finding in done.findings] == ["RPR-0001", "RPR-0002"]
    assert (done.ignored, done.expired) == ((), (one,))


def test_what_does_not_concern_the_subject_is_said_to_be_idle() -> None:
    one = Ignore("RPR-0002", "why", TODAY)
    assert decided(one).idle == (one,)


def test_the_longer_of_two_holds_and_an_unknown_id_is_refused() -> None:
    long, short = Ignore("rpr-0001", "b", dt.date(2027, 1, 1)), Ignore("RPR-0001", "a", TODAY)
    assert settled([long, short], SHELF) == {"RPR-0001": long}
    with pytest.raises(UnknownNameError, match="unknown repro 'RPR-0003'; did you mean"):
        settled([Ignore("RPR-0003", "b", TODAY)], SHELF)


def project(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_read_from_the_project(tmp_path: Path) -> None:
    text = '[tool.repros.audit]\nignore = [{ id = "RPR-0001", reason = "why", until = 2027-01-31 }]\n'
    assert from_pyproject(project(tmp_path, text)) == [Ignore("RPR-0001", "why", dt.date(2027, 1, 31))]
    assert from_pyproject(project(tmp_path, "[project]\nname = 'x'\n")) == []
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert nearest_pyproject(tmp_path / "deep" / "er") == tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    "entry",
    [
        '{ id = "RPR-0001", reason = "why" }',
        '{ id = "RPR-0001", until = 2027-01-31 }',
        '{ id = "RPR-0001", reason = " ", until = 2027-01-31 }',
        '{ id = "RPR-0001", reason = "why", until = "2027-01-31" }',
        '{ id = "RPR-0001", reason = "why", until = 2027-01-31T00:00:00 }',
        '{ id = "RPR-0001", reason = "why", until = 2027-01-31, by = "me" }',
        '"RPR-0001"',
    ],
)
def test_one_without_its_reason_or_its_day_is_refused(entry: str, tmp_path: Path) -> None:
    file = project(tmp_path, f"[tool.repros.audit]\nignore = [{entry}]\n")
    with pytest.raises(
        AuditError, match=r'in \[tool.repros.audit\]; expected \{ id = "RPR-0005", reason = "why", until'
    ):
        from_pyproject(file)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.repros.audit]\nignores = []\n", r"unknown key 'ignores' in \[tool.repros.audit\]; expected: ignore\."),
        ("[tool.repros.audit]\nignore = 3\n", r"ignore in \[tool.repros.audit\]; expected a list\."),
        ("[tool", r"pyproject.toml: cannot be read as TOML"),
    ],
)
def test_what_is_no_table_of_decisions_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=sentence):
        from_pyproject(project(tmp_path, text))
