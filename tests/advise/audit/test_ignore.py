"""Ignores: each has a reason, a last day and the id of a known failure."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest

from repros.advise.audit.assess import assess
from repros.advise.audit.ignore import Ignore, find_pyproject, index_ignores, read_ignores
from repros.advise.audit.report import AuditReport, build_report
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError, UnknownNameError
from tests import factories

TODAY = dt.date(2026, 11, 21)
CATALOGUE = Catalogue((factories.repro("RPR-0001"), factories.repro("RPR-0002", packages=("lightning",))))


def audited(*ignores: Ignore) -> AuditReport:
    subject = Subject("x", {"torch": (Constraint("2", Location("x")),)}, complete=True)
    return build_report(subject, assess(CATALOGUE, subject, {}), index_ignores(ignores, CATALOGUE), TODAY)


def test_an_ignore_applies_up_to_its_last_day() -> None:
    one = Ignore("RPR-0001", "why", TODAY)
    report = audited(one)
    assert [assessment.repro.id for assessment in report.assessments] == ["RPR-0002"]
    assert [(assessment.repro.id, ignore) for assessment, ignore in report.ignored] == [("RPR-0001", one)]
    assert (report.expired, report.unused) == ((), ())


def test_an_ignore_expires_after_its_last_day() -> None:
    one = Ignore("RPR-0001", "why", TODAY - dt.timedelta(days=1))
    report = audited(one)
    assert [assessment.repro.id for assessment in report.assessments] == ["RPR-0001", "RPR-0002"]
    assert (report.ignored, report.expired) == ((), (one,))


def test_an_ignore_of_an_unaffected_failure_is_unused() -> None:
    one = Ignore("RPR-0002", "why", TODAY)
    assert audited(one).unused == (one,)


def test_the_longer_of_two_ignores_counts_and_an_unknown_id_is_refused() -> None:
    long, short = Ignore("rpr-0001", "b", dt.date(2027, 1, 1)), Ignore("RPR-0001", "a", TODAY)
    assert index_ignores([long, short], CATALOGUE) == {"RPR-0001": long}
    with pytest.raises(UnknownNameError, match="'RPR-0003'"):
        index_ignores([Ignore("RPR-0003", "b", TODAY)], CATALOGUE)


def project(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_ignores_are_read_from_the_project(tmp_path: Path) -> None:
    text = '[tool.repros.audit]\nignore = [{ id = "RPR-0001", reason = "why", until = 2027-01-31 }]\n'
    assert read_ignores(project(tmp_path, text)) == [Ignore("RPR-0001", "why", dt.date(2027, 1, 31))]
    assert read_ignores(project(tmp_path, "[project]\nname = 'x'\n")) == []
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert find_pyproject(tmp_path / "deep" / "er") == tmp_path / "pyproject.toml"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_ignores_of_another_user_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    os.chown(project(tmp_path, "[project]\n"), 4242, 4242)
    assert find_pyproject(tmp_path / "deep") is None


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
def test_an_ignore_without_its_reason_or_its_day_is_refused(entry: str, tmp_path: Path) -> None:
    file = project(tmp_path, f"[tool.repros.audit]\nignore = [{entry}]\n")
    with pytest.raises(ReprosError, match=r"\[tool.repros.audit\]; expected \{ id = "):
        read_ignores(file)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[tool.repros.audit]\nignores = []\n", r"'ignores' in \[tool.repros.audit\]"),
        ("[tool.repros.audit]\nignore = 3\n", r"ignore in \[tool.repros.audit\]"),
        ("[tool", "pyproject.toml "),
    ],
)
def test_another_table_is_refused(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(ReprosError, match=place):
        read_ignores(project(tmp_path, text))
