"""OSV records, validated by OSV's own schema."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from packaging.version import Version

from repros.advise.export.osv import osv_record
from repros.engine import evidence
from repros.model import Repro, Upstream
from repros.model.unmeasured import existence
from tests import factories as make
from tests.engine.evidence.samples import MEASUREMENT
from tests.model.test_ranges import CONDITIONS, VERSIONS, meets
from tests.package_catalogue import load

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "osv" / "schema.json").read_text(encoding="utf-8"))


def schema() -> dict[str, Any]:
    """Return OSV 1.7.3's schema, relaxed for ids: the prefix `x_` for private databases came into it later."""
    relaxed = copy.deepcopy(SCHEMA)
    prefix = relaxed["$defs"]["prefix"]
    assert "x_" not in prefix["pattern"], "a newer schema needs no relaxing"
    prefix["pattern"] = prefix["pattern"].replace("^(", "^(x_RPR|")
    return relaxed


VALIDATOR = jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())


def affected(*ranges: str, packages: tuple[str, ...] = ("lightning",)) -> Repro:
    met = make.conditions(*ranges)
    return make.repro(affected=met, packages=packages, variants=(make.variant(affected=met),))


KNOWN = {MEASUREMENT.unit: MEASUREMENT}


def test_the_whole_record() -> None:
    repro = replace(
        affected("lightning>=2.1,<2.4", "torch>=2.1"),
        upstream=Upstream(
            reports=("https://github.com/a/b/issues/1",),
            fixed_by=("https://github.com/a/b/pull/2",),
            related=("https://github.com/a/b/discussions/3",),
        ),
    )
    note = "Note: affected only together with torch>=2.1, which OSV cannot express."
    assert osv_record(repro, KNOWN) == {
        "schema_version": "1.7.3",
        "id": "x_RPR-0001",
        "modified": "2026-11-21T00:00:00Z",
        "summary": "A toy",
        "details": f"Symptom: it fails.\n\n{note}",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "lightning", "purl": "pkg:pypi/lightning"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "2.1"}, {"fixed": "2.4"}]}],
            }
        ],
        "references": [
            {"type": "REPORT", "url": "https://github.com/a/b/issues/1"},
            {"type": "FIX", "url": "https://github.com/a/b/pull/2"},
            {"type": "WEB", "url": "https://github.com/a/b/discussions/3"},
        ],
        "database_specific": {
            "affected": ["lightning>=2.1,<2.4", "torch>=2.1"],
            "exists": [],
            "measured": ["lightning"],
            "lossy": [note],
            "kind": "bug",
            "documented": None,
            "unreleased_fix": [],
            "silent": False,
            "evidence": ["sim"],
        },
    }


@pytest.fixture(scope="module")
def kept() -> evidence.Evidence:
    """The evidence in the repository, read once."""
    return evidence.read()


@pytest.mark.of_each_script
@pytest.mark.parametrize("repro", list(load()), ids=lambda repro: repro.id)
def test_every_record_of_the_catalogue_is_valid(repro: Repro, kept: evidence.Evidence) -> None:
    VALIDATOR.validate(osv_record(repro, kept))


@pytest.mark.parametrize(
    "damage", [{"id": "RPR-0001"}, {"modified": "2026-11-21"}, {"affects": []}, {"affected": [{"package": {}}]}]
)
def test_the_schema_refuses_a_damaged_record(damage: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(osv_record(affected(), KNOWN) | damage)


@pytest.mark.parametrize(
    ("ranges", "events"),
    [
        ((), [{"introduced": "0"}]),
        (("lightning<2.4",), [{"introduced": "0"}, {"fixed": "2.4"}]),
        (("lightning>=2.5.3",), [{"introduced": "2.5.3"}]),
        (
            ("lightning<2.0.8 or lightning>=2.1,<2.5.3",),
            [{"introduced": "0"}, {"fixed": "2.0.8"}, {"introduced": "2.1"}, {"fixed": "2.5.3"}],
        ),
        (("lightning!=2.4.*,!=2.5.*",), [{"introduced": "0"}, {"fixed": "2.4"}, {"introduced": "2.6.dev0"}]),
        (("lightning>=2.1,<=2.3.3",), [{"introduced": "2.1"}, {"fixed": "2.3.3.post0.dev0"}]),
        (("lightning>=2.1", "lightning>=2.2,<3,<2.4"), [{"introduced": "2.2"}, {"fixed": "2.4"}]),
        (("lightning<2.4,<=2.4",), [{"introduced": "0"}, {"fixed": "2.4"}]),
        (("lightning<2.4 or lightning>=2.4,<2.5",), [{"introduced": "0"}, {"fixed": "2.5"}]),
        (("lightning~=2.5.1",), [{"introduced": "2.5.1"}, {"fixed": "2.6"}]),
        (("lightning==2.5.*",), [{"introduced": "2.5.dev0"}, {"fixed": "2.6"}]),
        (("lightning==2.5.0",), [{"introduced": "2.5.0"}, {"fixed": "2.5.0.post0.dev0"}]),
        (("no lightning>=2.1",), [{"introduced": "0"}, {"fixed": "2.1"}]),
        (("lightning<2,>3",), []),
        (("lightning!=2.1.dev0",), [{"introduced": "0"}, {"fixed": "2.1.dev0"}, {"introduced": "2.1.dev1"}]),
    ],
)
def test_ranges_become_events(ranges: tuple[str, ...], events: list[dict[str, str]]) -> None:
    made = osv_record(affected(*ranges), KNOWN)
    assert [group["events"] for group in made["affected"][0]["ranges"]] == ([events] if events else [])
    assert made["database_specific"]["lossy"] == []
    VALIDATOR.validate(made)


def is_listed(version: Version, events: list[dict[str, str]]) -> bool:
    """Return whether events list a version, by the evaluation in OSV's specification (`IncludedInRanges`)."""
    zero = Version("0.dev0")
    ordered = sorted((zero if text == "0" else Version(text), kind) for event in events for kind, text in event.items())
    vulnerable = False
    for at, kind in ordered:
        if kind == "introduced" and version >= at:
            vulnerable = True
        elif kind == "fixed" and version >= at:
            vulnerable = False
    return vulnerable


@given(CONDITIONS)
@example(["lightning!=2.1.dev0"])
def test_the_events_list_the_versions_of_the_ranges(texts: list[str]) -> None:
    """Only pre-releases of the release in `fixed`, and those of 0, are listed in addition."""
    made = osv_record(affected(*texts), KNOWN)
    VALIDATOR.validate(made)
    events = [event for group in made["affected"][0]["ranges"] for event in group["events"]]
    fixed = {Version(event["fixed"]) for event in events if "fixed" in event}
    for version in VERSIONS:
        before_a_fix = version.is_prerelease and Version(version.base_version) in {*fixed, Version("0")}
        if is_listed(version, events) is not meets(texts, version):
            assert is_listed(version, events), version
            assert before_a_fix, version


@pytest.mark.parametrize("repro", [repro for repro in load() if repro.failing.affected], ids=lambda repro: repro.id)
def test_the_catalogue_s_events_are_the_conditions_on_each_package_alone(repro: Repro) -> None:
    for entry in osv_record(repro, KNOWN)["affected"]:
        name = entry["package"]["name"]
        conditions = map(str, (*repro.failing.affected, *existence(repro, repro.failing)))
        alone = [text for text in conditions if {*packages_in(text)} == {name}]
        for version in VERSIONS:
            if not version.is_prerelease:
                wanted = meets([text.replace(name, "lightning") for text in alone], version)
                assert is_listed(version, entry["ranges"][0]["events"]) is wanted, (name, version)


def packages_in(condition: str) -> list[str]:
    return [re.split(r"[<>=!~]", term.removeprefix("no "))[0] for term in condition.split(" or ")]


@pytest.mark.parametrize(
    ("ranges", "events", "note"),
    [
        (
            ("lightning>=2.0", "lightning<2.6 or no torch>=2.11"),
            [{"introduced": "2.0"}],
            "Note: lightning>=2.6 is affected only with no torch>=2.11, which OSV cannot express.",
        ),
        (
            ("lightning<2.0.8 or lightning>=2.1,<2.5.3 or torch<2",),
            [{"introduced": "0"}],
            "Note: lightning>=2.0.8,<2.1 or lightning>=2.5.3 is affected only with torch<2, which OSV cannot express.",
        ),
        (
            ("accelerate<1 or torch<2",),
            [{"introduced": "0"}],
            "Note: affected only together with accelerate<1 or torch<2, which OSV cannot express.",
        ),
    ],
)
def test_alternatives_of_several_packages_list_every_release_that_may_be_affected(
    ranges: tuple[str, ...], events: list[dict[str, str]], note: str
) -> None:
    made = osv_record(affected(*ranges), KNOWN)
    assert made["affected"][0]["ranges"][0]["events"] == events
    assert made["database_specific"]["affected"] == list(ranges)
    assert made["database_specific"]["lossy"] == [note]


@pytest.mark.parametrize(
    ("exists", "introduced", "note"),
    [
        ((), "0", "Note: measured with lightning>=2.0 only; whether other releases of lightning fail is unknown."),
        (
            ("lightning>=1.8",),
            "1.8",
            "Note: measured with lightning>=2.0 only; whether other releases of lightning fail is unknown.",
        ),
        (("lightning>=2.0",), "2.0", ""),
        (("lightning>=2.1",), "2.1", ""),
    ],
)
def test_a_record_begins_where_what_fails_exists(exists: tuple[str, ...], introduced: str, note: str) -> None:
    repro = replace(
        affected("lightning<2.4"),
        dependencies=make.requirements("torch>=2.0", "lightning>=2.0"),
        exists=make.conditions(*exists),
        exists_source="https://a.b/1" if exists else None,
    )
    made = osv_record(repro, KNOWN)
    assert made["affected"][0]["ranges"][0]["events"] == [{"introduced": introduced}, {"fixed": "2.4"}]
    assert made["database_specific"]["lossy"] == ([note] if note else [])
    assert ({"type": "WEB", "url": "https://a.b/1"} in made["references"]) is bool(exists)


def test_a_failure_of_two_packages_together_has_a_note() -> None:
    made = osv_record(affected("lightning<2.4", packages=("lightning", "torch")), KNOWN)
    assert [package["package"]["name"] for package in made["affected"]] == ["lightning", "torch"]
    assert made["database_specific"]["lossy"] == [
        "Note: the failure needs lightning and torch together; OSV lists each as if it were affected alone."
    ]


def test_without_evidence_the_script_dates_the_record(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.touch()
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC).timestamp()
    os.utime(script, (noon, noon))
    assert osv_record(replace(affected(), path=script), {})["modified"] == "2024-02-29T00:00:00Z"
