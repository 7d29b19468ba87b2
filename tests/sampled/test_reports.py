"""The sampled reports name failures of the catalogue, and the table in the documentation is made from them."""

from __future__ import annotations

from tests.package_catalogue import load
from tests.sampled.table import read_reports


def test_a_hundred_reports_each_drawn_once() -> None:
    reports = read_reports()
    assert len(reports) == len({report.url for report in reports}) == 100
    assert {report.pool for report in reports} == {"lightning", "hugging face", "pytorch", "downstream"}


def test_each_answer_is_one_of_the_catalogue_and_has_a_reason() -> None:
    known = {repro.id for repro in load()}
    for report in read_reports():
        answers = {report.id, report.near} - {None}
        assert answers <= known
        assert len(answers) <= 1
        assert bool(answers) == bool(report.why)


def test_only_what_can_be_shown_has_an_id() -> None:
    assert [report.url for report in read_reports() if report.id and not report.can_be_shown] == []
