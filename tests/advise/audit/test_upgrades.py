"""Upgrades: the releases by which most failures end, of the fewest packages, checked by audits of the new releases."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from packaging.version import Version

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.advise.audit.upgrades import Upgrade, find_upgrades
from repros.model import Repro
from tests import factories
from tests.advise.audit.test_assess import subject
from tests.package_catalogue import load


def repro(id_: str, *affected: str, packages: tuple[str, ...] = ("lightning",)) -> Repro:
    ranges = factories.conditions(*affected)
    return factories.repro(id_, affected=ranges, packages=packages, variants=(factories.variant(affected=ranges),))


def upgrades(of: Subject, *repros: Repro) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return of each upgrade the releases, the number of failures that end, and those that begin."""
    found = [one for one in assess(repros, of, {}) if one.status is AuditStatus.AFFECTED]
    return [
        (" with ".join(map(str, one.releases)), len(one.ends), one.begins) for one in find_upgrades(of, found, repros)
    ]


def test_the_lowest_release_without_most_failures_is_chosen() -> None:
    ranges = ("lightning<2.5.3", "lightning>=2.1,<2.6.1", "lightning<2.4")
    repros = [repro(f"RPR-000{number}", text) for number, text in enumerate(ranges, 1)]
    assert upgrades(subject(lightning="2.2"), *repros) == [("lightning 2.2 -> 2.6.1", 3, ())]
    later = repro("RPR-0004", "lightning>=2.6")
    assert upgrades(subject(lightning="2.2"), *repros, later) == [("lightning 2.2 -> 2.6.1", 3, ("RPR-0004",))]


def test_the_end_of_a_range_is_no_release_of_it() -> None:
    """2.6.dev0 is in both ranges, and no release is."""
    repros = [repro("RPR-0001", "lightning<2.2 or lightning>=2.6"), repro("RPR-0002", "lightning<2.6")]
    assert upgrades(subject(lightning="2.1"), *repros) == [("lightning 2.1 -> 2.2", 1, ())]
    third = repro("RPR-0003", "lightning<2.5")
    assert upgrades(subject(lightning="2.1"), *repros, third) == [("lightning 2.1 -> 2.5", 2, ())]


def test_a_failure_that_either_of_two_packages_ends_takes_no_second_upgrade() -> None:
    repros = [repro("RPR-0001", "lightning<2.4", "torch<2.6"), repro("RPR-0002", "torch<2.5", packages=("torch",))]
    found = upgrades(subject(lightning="2.2", torch="2.4"), *repros)
    assert found == [("torch 2.4 -> 2.6", 2, ())]


def test_releases_that_are_needed_together_are_one_upgrade() -> None:
    together = repro("RPR-0001", "accelerate<1.13 or no bitsandbytes>=0.48", packages=("accelerate",))
    assert upgrades(subject(accelerate="1.0", bitsandbytes="0.44"), together) == [
        ("accelerate 1.0 -> 1.13 with bitsandbytes 0.44 -> 0.48", 1, ())
    ]
    assert upgrades(subject(True, accelerate="1.0"), together) == [
        ("accelerate 1.0 -> 1.13 with bitsandbytes (not listed) -> 0.48", 1, ())
    ]


def test_no_newer_release_no_upgrade() -> None:
    assert upgrades(subject(lightning="2.2"), repro("RPR-0001", "lightning>=2.1")) == []


def pinned(of: Subject, chosen: tuple[Upgrade, ...]) -> Subject:
    pins: dict[str, Any] = {
        one.package: (Constraint(str(one.lowest), Location("x"), one.lowest),)
        for upgrade in chosen
        for one in upgrade.releases
    }
    return replace(of, constraints={**of.constraints, **pins})


def affected(of: Subject) -> dict[str, Assessment]:
    return {one.repro.id: one for one in assess(load(), of, {}) if one.status is AuditStatus.AFFECTED}


@pytest.mark.of_all_scripts
@pytest.mark.parametrize(
    "of",
    [
        subject(lightning="2.4.0", torch="2.4.1", accelerate="1.0.1", bitsandbytes="0.44", torchmetrics="1.4.0"),
        subject(True, torch="2.1.2", lightning="2.1.3", accelerate="0.25.0", transformers="4.36", peft="0.7"),
    ],
    ids=["2024-09", "2023-12"],
)
def test_an_audit_of_the_new_releases_lacks_the_failures_and_no_smaller_set_of_packages_does(of: Subject) -> None:
    before = affected(of)
    fixable = [one for one in before.values() if one.fixed]
    chosen = find_upgrades(of, fixable, load())
    after = affected(pinned(of, chosen))
    ended = {id_ for upgrade in chosen for id_ in upgrade.ends}
    assert len(ended) > 5
    assert not ended & after.keys()
    assert {id_ for upgrade in chosen for id_ in upgrade.begins} >= after.keys() - before.keys()
    for fewer in combinations(chosen, len(chosen) - 1):
        assert ended & affected(pinned(of, fewer)).keys(), "each of them is needed"
    assert all(one.lowest > Version("0") for upgrade in chosen for one in upgrade.releases)


def test_a_release_that_is_present_already_is_kept_and_none_is_lowered() -> None:
    together = repro("RPR-0001", "accelerate<1.13 or no bitsandbytes>=0.48", packages=("accelerate",))
    newest = subject(accelerate="1.15.0", bitsandbytes="0.44")
    assert upgrades(newest, together) == [("bitsandbytes 0.44 -> 0.48", 1, ())]
    assert upgrades(subject(accelerate="1.15.0"), together) == []
    between = repro("RPR-0002", "lightning<2.0.8 or lightning>=2.1")
    assert upgrades(subject(lightning="2.4"), between) == []
    alone = repro("RPR-0003", "bitsandbytes<0.50", packages=("bitsandbytes",))
    assert upgrades(newest, together, alone) == [("bitsandbytes 0.44 -> 0.50", 2, ())]
