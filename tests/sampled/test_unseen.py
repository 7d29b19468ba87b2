"""The reports that nobody here had seen: each once, with a judgement."""

from __future__ import annotations

from tests.sampled.unseen_table import read_unseen, table


def test_eighty_reports_each_drawn_once_and_judged() -> None:
    reports = read_unseen()
    assert len(reports) == len({report.url for report in reports}) == 80
    assert {report.shown for report in reports} == {"yes", "partly", "no"}
    assert {report.first.right for report in reports} <= {"yes", "no", "cannot tell"}
    repositories = [report.url.split("/issues/")[0] for report in reports]
    assert max(map(repositories.count, repositories)) <= 6


def test_the_table_has_all_of_them() -> None:
    assert "| **all** | 80 |" in table()
