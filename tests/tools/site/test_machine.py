"""The files for programs follow their schemas."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import jsonschema
import pytest

from tests.advise.export.test_osv import VALIDATOR
from tools.site.source import Source

pytestmark = [pytest.mark.of_all_scripts, pytest.mark.timeout(900)]


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


def test_the_scripts_are_python(site: Path) -> None:
    for file in site.glob("failures/*.py"):
        ast.parse(file.read_text("utf-8"))
