"""The reported scripts are none of the catalogue's, and the table in the documentation is made from them."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from repros.engine.stacks import load_stacks
from tests.package_catalogue import load
from tests.sampled.scripts_table import Answer, Kind, read_scripts

ALL = (*read_scripts(), *read_scripts("long"), *read_scripts("third"))


def test_at_least_twenty_reports_each_drawn_once() -> None:
    assert len(read_scripts()) >= 20
    assert len(ALL) == len({script.url for script in ALL})
    assert min(script.year for script in ALL) >= 2022, "one of 2022 was repaired in 2025"


@pytest.mark.of_all_scripts
def test_the_catalogue_had_none_of_them() -> None:
    named = {url: repro.id for repro in load() for url in repro.upstream.links}
    for script in ALL:
        assert script.id == named.get(script.url), f"{script.url}: expected the id of the failure written from it since"


def test_each_ran_on_a_stack_and_says_what_was_seen() -> None:
    stacks = load_stacks()
    for script in ALL:
        assert 1 <= len(script.stacks) <= 2, script.url
        assert {*script.stacks} <= {*stacks}, script.url
        assert all((script.title, script.signature, script.releases, script.seen)), script.url


def test_what_ran_again_names_what_was_replaced_or_added() -> None:
    again = [script for script in ALL if script.wanted]
    assert again
    for script in again:
        named = {Requirement(wanted).name for wanted in script.wanted}
        assert any(release.partition(" ")[0] in named for release in script.releases), script.url


def test_what_was_not_reproduced_has_a_reason_and_what_was_can_be_shown() -> None:
    for script in ALL:
        is_reproduced = script.answer is Answer.REPRODUCED
        assert bool(script.why) != is_reproduced, script.url
        assert (script.lacks in {"release", "package", "simulation", "script", "machine"}) != is_reproduced, script.url
        assert script.can_be_shown == (script.lacks not in {"script", "machine"}), script.url


def test_the_reported_exception_was_seen_of_what_was_reproduced_and_of_no_other() -> None:
    for script in ALL:
        if script.kind is Kind.EXCEPTION:
            assert (script.signature in script.seen) == (script.answer is Answer.REPRODUCED), script.url
