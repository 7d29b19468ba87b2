"""The wild logs: their form, and how `repros match` does on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.diagnose.match.wild_logs import (
    Kind,
    measure,
    not_on_top,
    read_notes,
    read_wild_logs,
    without_a_log,
)
from tests.package_catalogue import load

LOGS = read_wild_logs()
CATALOGUE = load()
LEAST_ANYWHERE, LEAST_ON_TOP, LEAST_LIKELY, LEAST_CERTAIN, MOST_OTHERS = 0.9, 0.85, 0.9, 0.98, 0.02
"""Shares that both halves must keep; `docs/matching.md` has the figures themselves."""

pytestmark = pytest.mark.of_all_scripts


def test_each_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(log.name for log in LOGS).items() if count > 1] == []


def test_a_positive_names_documented_failures_and_no_other_does() -> None:
    ids = {repro.id for repro in CATALOGUE}
    for log in LOGS:
        assert bool(log.expected) is (log.kind is Kind.POSITIVE), log.name
        assert set(log.expected) <= ids, log.name


def test_none_is_from_a_thread_that_the_catalogue_links() -> None:
    linked = {link for repro in CATALOGUE for link in repro.upstream.links}
    linked |= {variant.source for repro in CATALOGUE for variant in repro.variants if variant.source}
    assert [log.name for log in LOGS if log.source.partition("#")[0] in linked] == []


def test_a_repository_is_in_one_half() -> None:
    halves = {(log.repository.lower(), log.is_counted) for log in LOGS}
    assert len(halves) == len({repository for repository, _ in halves})
    for kind in Kind:
        counted = sum(log.is_counted for log in LOGS if log.kind is kind)
        assert 0.3 < counted / sum(log.kind is kind for log in LOGS) < 0.7


@pytest.mark.parametrize("is_counted", [False, True], ids=["developed on", "counted"])
def test_figures(is_counted: bool, record_property: Callable[[str, object], None]) -> None:
    half = [log for log in LOGS if log.is_counted is is_counted]
    figures = measure(half, CATALOGUE)
    name = "counted" if is_counted else "developed on"
    record_property("figure", f"repros match, wild logs, the half {name}: {figures}")
    floors = {
        figures.anywhere: LEAST_ANYWHERE,
        figures.on_top: LEAST_ON_TOP,
        figures.likely_right: LEAST_LIKELY,
        figures.certain_right: LEAST_CERTAIN,
    }
    for (right, of), least in floors.items():
        assert right >= least * of
    assert figures.confusable_confident[0] == 0
    assert figures.other_answered[0] <= MOST_OTHERS * figures.other_answered[1]


def test_what_remains_wrong_has_a_reason() -> None:
    assert set(read_notes()["remaining"]) == set(not_on_top(CATALOGUE))


def test_logs_were_searched_for_wherever_there_are_none() -> None:
    searched = {search["id"] for search in read_notes()["search"]}
    assert set(without_a_log(CATALOGUE)) <= searched <= {repro.id for repro in CATALOGUE}
