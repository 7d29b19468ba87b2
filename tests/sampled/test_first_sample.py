"""The first sample's named reports name failures of the catalogue, and no more of them than was read or is named."""

from __future__ import annotations

import re
from itertools import groupby

import pytest

from tests.package_catalogue import load
from tests.sampled.first_sample import FirstSample, NamedReport, paragraph, read_first_sample
from tests.sampled.table import read_reports

_THREAD = re.compile(r"https://github\.com/[\w-]+/[\w.-]+/(issues|pull)/[1-9]\d*")


def test_each_address_is_one_thread_and_is_there_once() -> None:
    urls = [report.url for report in read_first_sample().reports]
    assert [url for url in urls if not _THREAD.fullmatch(url)] == []
    assert len(urls) == len(set(urls)) == 48


def test_the_groups_are_the_fifteen_that_were_kept_each_in_one_place() -> None:
    groups = [report.group for report in read_first_sample().reports]
    begins = [group for group, _ in groupby(groups)]
    assert len(begins) == len(set(begins)) == 15


def test_each_answer_is_one_of_the_catalogue_and_has_a_reason() -> None:
    known = {repro.id for repro in load()}
    for report in read_first_sample().reports:
        answers = {report.id, report.near} - {None}
        assert answers <= known, report.url
        assert len(answers) <= 1, report.url
        assert report.why, report.url


def test_a_thread_that_was_not_read_has_the_id_of_the_script_that_names_it_or_none() -> None:
    named = {(url, repro.id) for repro in load() for url in repro.upstream.reports}
    for report in read_first_sample().reports:
        assert report.read in {"excerpt", "no"}, report.url
        if report.read == "no":
            assert report.near is None, report.url
            assert report.id is None or (report.url, report.id) in named, report.url


def test_what_a_reason_says_of_the_script_is_so() -> None:
    named = {(url, repro.id) for repro in load() for url in repro.upstream.reports}
    for report in read_first_sample().reports:
        assert "the script names it" not in report.why or (report.url, report.id) in named, report.url


def test_both_samples_say_the_same_of_a_thread_that_is_in_both() -> None:
    """The reader of the second sample did not know these answers."""
    first = {report.url: (report.id, report.near) for report in read_first_sample().reports}
    second = {report.url: (report.id, report.near) for report in read_reports()}
    both = first.keys() & second.keys()
    assert both
    assert {url: first[url] for url in both} == {url: second[url] for url in both}


@pytest.mark.parametrize(
    ("ids", "least", "kept"), [((), "1 of 8 (12%)", "0 of 8 (0%)"), (("a", "b"), "3 of 8 (38%)", "2 of 8 (25%)")]
)
def test_the_lower_bound_counts_ids_alone(ids: tuple[str, ...], least: str, kept: str) -> None:
    with_ids = [NamedReport(id_, "group", "why", "excerpt", id_) for id_ in ids]
    near = NamedReport("c", "group", "why", "no", near="d")
    text = " ".join(paragraph(FirstSample(9, 4, 8, 1, (*with_ids, near))).split())
    assert f"at least {least}" in text
    assert f"and {kept} even if" in text
    assert "1 threads were not found" in text
