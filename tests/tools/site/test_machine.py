"""The files for programs: they follow their schemas, and the feed's entries keep their ids."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from repros.model import Role
from tests.advise.export.test_osv import VALIDATOR
from tools.site import machine
from tools.site.source import Source

pytestmark = pytest.mark.of_all_scripts
ATOM = "{http://www.w3.org/2005/Atom}"


def test_the_failures_follow_their_schema(site: Path, source: Source) -> None:
    schema = json.loads((site / "failures.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    everything = json.loads((site / "failures.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(everything)
    assert [failure["id"] for failure in everything["failures"]] == [repro.id for repro in source.catalogue]
    for failure in everything["failures"]:
        assert json.loads((site / f"failures/{failure['id']}.json").read_text("utf-8")) == failure


def test_the_schema_refuses_an_unknown_verdict(site: Path) -> None:
    schema = json.loads((site / "failures.schema.json").read_text("utf-8"))
    everything = json.loads((site / "failures.json").read_text("utf-8"))
    measured = next(failure for failure in everything["failures"] if failure["evidence"])
    measured["evidence"][0]["verdicts"]["failing"] = "probably"
    assert not jsonschema.Draft202012Validator(schema).is_valid(everything)


def test_the_advisories_are_osv_records(site: Path, source: Source) -> None:
    records = json.loads((site / "osv.json").read_text("utf-8"))
    for record, repro in zip(records, source.catalogue, strict=True):
        VALIDATOR.validate(record)
        assert json.loads((site / f"failures/{repro.id}.osv.json").read_text("utf-8")) == record


def test_the_feed_is_atom(site: Path, source: Source) -> None:
    root = ET.fromstring((site / "news.atom").read_text("utf-8"))  # noqa: S314 - this project's own file
    assert root.tag == f"{ATOM}feed"
    for place in (root, *root.iter(f"{ATOM}entry")):
        updated = place.findtext(f"{ATOM}updated")
        assert place.findtext(f"{ATOM}title")
        assert updated is not None
        assert datetime.fromisoformat(updated).tzinfo is not None
    entries = [*root.iter(f"{ATOM}entry")]
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids)
    assert {f"urn:repros:{repro.id}:new" for repro in source.catalogue} <= set(ids)
    moments = [entry.findtext(f"{ATOM}updated") or "" for entry in entries]
    assert moments == sorted(moments, reverse=True)
    links = [link.get("href") or "" for entry in entries for link in entry.iter(f"{ATOM}link")]
    prefix = "https://example.org/repros/"
    assert all((site / link.removeprefix(prefix)).is_file() for link in links)


def test_a_catalogue_that_was_never_measured_has_a_feed_without_entries(source: Source) -> None:
    root = ET.fromstring(machine.feed(replace(source, evidence={}), ""))  # noqa: S314 - this project's own text
    assert root.findall(f"{ATOM}entry") == []
    newest = max(stack.until for stack in source.stacks)
    assert root.findtext(f"{ATOM}updated") == f"{newest.isoformat()}T00:00:00Z"


def test_news_is_where_neighbouring_stacks_differ(source: Source) -> None:
    found = {(change.repro.id, change.kind, change.where) for change in machine.news(source)}
    assert ("RPR-0001", "gone", "2024-09") in found
    assert ("RPR-0006", "regressed", "2024-03") in found
    assert not any(id_ == "RPR-0005" and kind != "new" for id_, kind, _ in found)


def test_the_plain_text_names_every_fix(site: Path, source: Source) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    for repro in source.catalogue:
        assert f"## {repro.id} {repro.title}\n" in text
        assert all(variant.about in text for variant in repro.variants if variant.role is Role.WORKS)
        contrasts = [variant for variant in repro.variants if variant.role is Role.CONTRAST]
        section = text.partition(f"## {repro.id} ")[2].partition("\n## ")[0]
        assert not [line for line in section.splitlines() for variant in contrasts if f": {variant.name}: " in line]


def test_the_scripts_are_python(site: Path) -> None:
    for file in site.glob("failures/*.py"):
        ast.parse(file.read_text("utf-8"))
