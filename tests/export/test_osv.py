"""OSV records, validated by OSV's own schema."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros import evidence
from repros.engine.catalogue import load
from repros.export.osv import osv_record
from repros.model import Repro, Upstream
from tests import factories as make
from tests.evidence.samples import MEASUREMENT

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
    ("ranges", "events", "inexact"),
    [
        ((), [{"introduced": "0"}], ""),
        (("lightning<2.4",), [{"introduced": "0"}, {"fixed": "2.4"}], ""),
        (("lightning>=2.5.3",), [{"introduced": "2.5.3"}], ""),
        (("lightning>=2.1,<=2.3.3",), [{"introduced": "2.1"}, {"last_affected": "2.3.3"}], ""),
        (("lightning>=2.1", "lightning>=2.2,<3,<2.4"), [{"introduced": "2.2"}, {"fixed": "2.4"}], ""),
        (("lightning<2.4,<=2.4",), [{"introduced": "0"}, {"fixed": "2.4"}], ""),
        (("lightning~=2.5.1",), [{"introduced": "2.5.1"}, {"fixed": "2.6"}], ""),
        (("lightning==2.5.*",), [{"introduced": "2.5"}, {"fixed": "2.6"}], ""),
        (("lightning==2.5.0",), [{"introduced": "2.5.0"}, {"last_affected": "2.5.0"}], ""),
        (("lightning>2.1",), [{"introduced": "2.1"}], "lightning>2.1"),
        (("lightning!=2.2",), [{"introduced": "0"}], "lightning!=2.2"),
    ],
)
def test_ranges_become_events(ranges: tuple[str, ...], events: list[dict[str, str]], inexact: str) -> None:
    made = osv_record(affected(*ranges), KNOWN)
    assert made["affected"][0]["ranges"][0]["events"] == events
    note = f"Note: OSV cannot express {inexact} exactly; the events are the nearest equivalent."
    assert made["database_specific"]["lossy"] == ([note] if inexact else [])
    VALIDATOR.validate(made)


VERSIONS = [
    Version(text)
    for text in ("0.9", "2.0.9", "2.1", "2.1.3", "2.2", "2.3.3", "2.4", "2.5.0", "2.5.1", "2.5.9", "2.6", "3.1")
]


@pytest.mark.parametrize("text", ["", "<2.4", ">=2.1,<2.4", "<=2.3.3", "~=2.5.1", "==2.5.*", "==2.5.0", ">=2.6"])
def test_the_events_name_the_same_releases_as_the_range(text: str) -> None:
    events = osv_record(affected(*([f"lightning{text}"] if text else [])), KNOWN)["affected"][0]["ranges"][0]["events"]
    ends = {kind: Version(version) for event in events for kind, version in event.items()}
    for version in VERSIONS:
        inside = (
            version >= ends["introduced"]
            and version < ends.get("fixed", Version("999"))
            and version <= ends.get("last_affected", Version("999"))
        )
        assert inside is SpecifierSet(text).contains(version), version


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


def test_alternatives_list_every_release_that_may_be_affected() -> None:
    made = osv_record(affected("lightning>=2.0", "lightning<2.6 or no torch>=2.11"), KNOWN)
    assert made["affected"][0]["ranges"][0]["events"] == [{"introduced": "2.0"}]
    assert made["database_specific"]["affected"] == ["lightning>=2.0", "lightning<2.6 or no torch>=2.11"]
    assert made["database_specific"]["lossy"] == [
        "Note: affected only together with lightning<2.6 or no torch>=2.11, which OSV cannot express."
    ]


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
