"""The reports that nobody here had seen: each once, with a judgement."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled.unseen_table import AGAIN, FIFTH, FIRST, FOURTH, THIRD, read_unseen, table


@pytest.mark.parametrize("file", [FIRST, AGAIN, THIRD, FOURTH, FIFTH], ids=lambda file: file.stem)
def test_eighty_reports_each_drawn_once_and_judged(file: Path) -> None:
    reports = read_unseen(file)
    assert len(reports) == len({report.url for report in reports}) == 80
    assert {report.shown for report in reports} == {"yes", "partly", "no"}
    assert {report.first.right for report in reports} <= {"yes", "no", "cannot tell"}
    repositories = [report.url.split("/issues/")[0] for report in reports]
    assert max(map(repositories.count, repositories)) <= 6


def test_no_report_is_drawn_again() -> None:
    urls = [report.url for file in (FIRST, AGAIN, THIRD, FOURTH, FIFTH) for report in read_unseen(file)]
    assert len(urls) == len(set(urls))


def test_the_table_has_all_of_each_sample() -> None:
    assert table().count("| **all** | 80 |") == 5
