"""The rows of the index and of the heat map: the orders, and what a square says."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from repros.engine.evidence import StackStatus
from repros.model import Role
from tools.site.overview import overview, severity
from tools.site.source import Source


def test_each_order_has_every_place_once(source: Source) -> None:
    rows = overview(source)["rows"]
    for order in range(3):
        assert sorted(row["places"][order] for row in rows) == [*range(len(rows))]


def test_silent_failures_are_the_most_severe_and_fewer_fixes_are_worse(source: Source) -> None:
    ranked = sorted(overview(source)["rows"], key=lambda row: row["places"][0])
    shows = [
        2 if row["repro"].silent else 1 if row["repro"].failing.signature.ends is not None else 0 for row in ranked
    ]
    assert shows == sorted(shows, reverse=True)
    repro = next(repro for repro in source.catalogue if sum(v.role is Role.WORKS for v in repro.variants) > 1)
    fewer = replace(repro, variants=tuple(v for v in repro.variants if v.role is not Role.WORKS))
    assert severity(fewer, source) > severity(repro, source)
    assert severity(repro, source) > severity(repro, replace(source, evidence={}))


def test_the_newest_is_what_was_measured_last_and_first_of_all_what_never_was(source: Source) -> None:
    first, second, *_ = source.catalogue
    day = dt.date(2026, 1, 1)
    evidence = {
        unit: replace(measurement, date=day if unit.repro == second.id else dt.date(2020, 1, 1))
        for unit, measurement in source.evidence.items()
        if unit.repro != first.id
    }
    places = {row["repro"].id: row["places"][1] for row in overview(replace(source, evidence=evidence))["rows"]}
    assert (places[first.id], places[second.id]) == (0, 1)


def test_what_is_read_aloud_names_the_stacks_that_have_the_failure(source: Source) -> None:
    for row in overview(source)["rows"]:
        failing = [square.stack.name for square in row["squares"] if square.status is StackStatus.FAILS]
        assert row["label"] == f"fails on {', '.join(failing)}"
