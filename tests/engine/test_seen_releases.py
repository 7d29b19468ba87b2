"""The releases with which one failure was measured."""

from __future__ import annotations

from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.seen_releases import CLEAN, FAILING, seen_releases
from repros.model import Verdict


def test_the_verdicts_are_those_of_the_model() -> None:
    assert {verdict.value for verdict in Verdict if verdict.shows_failure} == FAILING
    assert {verdict.value for verdict in Verdict if verdict.ran_clean} == CLEAN


def test_the_releases_are_those_of_the_evidence() -> None:
    measured = evidence.read()
    for repro in list(load())[::10]:
        package, failing, clean = seen_releases(repro)
        units = [one for one in measured.values() if one.unit.repro == repro.id and "failing" in one.variants]
        known = {one.versions[package].partition("+")[0]: one for one in units if package in one.versions}
        ends = {release for span in (*failing, *clean) for release in span.split(" to ")}
        assert ends <= known.keys()
        shown = {version for version, one in known.items() if one.variants["failing"].verdict.shows_failure}
        assert bool(shown) == bool(failing)


def test_spans_of_a_failure_of_new_releases() -> None:
    seen = seen_releases(load().find("RPR-0022"))
    assert seen.package == "lightning"
    assert seen.clean[0].startswith("2.0.")
    assert seen.failing[0].startswith("2.6.0")
