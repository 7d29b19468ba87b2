"""Audit reports as text, JSON and SARIF, as whole outputs."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros import __version__
from repros.audit.assess import assess
from repros.audit.formats import FormatName, choose_format
from repros.audit.formats.json_format import render_json
from repros.audit.formats.sarif import render_sarif
from repros.audit.formats.text import render_text
from repros.audit.ignore import Ignore, index_ignores
from repros.audit.report import AuditReport, build_report
from repros.audit.subject import Constraint, Location, Subject
from repros.engine.catalogue import load
from repros.model import Outcome
from repros.model.affected import packages_of
from repros.model.catalogue import Catalogue
from tests import factories
from tests.audit.test_assess import measurement, subject

TODAY = dt.date(2026, 11, 21)
DOC = "A toy.\n\nSymptom: it fails.\n\nCause: a cause."
FIXED = factories.variant("fixed", Outcome.PASSES, about="a fresh Trainer", source="https://example.org/2")


def repro(id_: str, affected: str, **given: Any) -> Any:
    ranges = factories.conditions(*filter(None, [affected]))
    packages = packages_of(ranges) or ("torch",)
    return factories.repro(
        id_, affected=ranges, packages=packages, doc=DOC, variants=(factories.variant(affected=ranges), FIXED), **given
    )


CATALOGUE = Catalogue(
    (
        repro("RPR-0001", "lightning>=2.1,<2.4", title="The LR finder leaves results behind"),
        repro("RPR-0002", "lightning<2.6", silent=True),
        repro("RPR-0003", "accelerate<1"),
        repro("RPR-0004", "bitsandbytes<1"),
        repro("RPR-0005", "lightning<2"),
        repro("RPR-0006", ""),
        repro("RPR-0007", "torch<2"),
        repro("RPR-0008", ""),
    )
)
SUBJECT = Subject(
    "requirements.txt",
    {
        "lightning": (Constraint("2.2", Location("requirements.txt", 1), Version("2.2")),),
        "torch": (Constraint("2.7", Location("requirements.txt", 2), Version("2.7")),),
        "accelerate": (Constraint(">=0.20", Location("requirements.txt", 3), releases=SpecifierSet(">=0.20")),),
    },
    complete=False,
    unparsed=("requirements.txt:9: 'x y' (not a requirement)",),
)
IGNORES = (
    Ignore("RPR-0006", "we know", dt.date(2027, 1, 31)),
    Ignore("RPR-0008", "we knew", dt.date(2026, 1, 31)),
    Ignore("RPR-0005", "not ours", dt.date(2027, 1, 31)),
)
SEEN = measurement("2023-12", lightning="2.2", torch="2.7")


@pytest.fixture
def report() -> AuditReport:
    found = assess(CATALOGUE, SUBJECT, {SEEN.unit: SEEN})
    return build_report(SUBJECT, found, index_ignores(IGNORES, CATALOGUE), TODAY)


TEXT = """\
RPR-0001 The LR finder leaves results behind
  because     lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.4
  fixed in    lightning>=2.4
  unaffected  lightning<2.1
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    measured with these versions on cpu (stack 2023-12)
  more        repros show RPR-0001

RPR-0002 A toy (silent)
  because     lightning 2.2 (requirements.txt:1) is in lightning<2.6
  fixed in    lightning>=2.6
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0002

RPR-0008 A toy
  because     torch 2.7 (requirements.txt:2): every release
  fixed in    no release yet
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0008

RPR-0003 A toy: possible, depending on the release that is installed
  because     accelerate >=0.20 (requirements.txt:3) may be in accelerate<1
  fixed in    accelerate>=1
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0003

Unknown
  bitsandbytes is not listed: RPR-0004
  not understood: requirements.txt:9: 'x y' (not a requirement)
  audit the installed environment to know: repros audit --python PATH

ignored RPR-0006 until 2027-01-31: we know
expired ignore RPR-0008: ended on 2026-01-31 (we knew); renew it, or upgrade
unused ignore RPR-0005: not affected

requirements.txt: 8 documented failures: 3 affected (2 fixed in a newer release), 1 possible, 1 unknown, 2 not affected,
  1 ignored"""


def test_text(report: AuditReport) -> None:
    assert render_text(report, width=120).plain == TEXT


def test_verbose_text(report: AuditReport) -> None:
    shown = render_text(report, width=120, verbose=True).plain
    assert "\nUnknown\n  RPR-0004: bitsandbytes is not listed\n" in shown
    assert "\nNot affected\n  RPR-0005: lightning 2.2 (requirements.txt:1) is not in lightning<2\n" in shown


def test_text_fits_a_narrow_terminal(report: AuditReport) -> None:
    lines = render_text(report, width=60, verbose=True).plain.splitlines()
    assert max(map(len, lines)) <= 60
    assert "\n".join(lines[:3]) == (
        "RPR-0001 The LR finder leaves results behind\n"
        "  because     lightning 2.2 (requirements.txt:1) is in\n"
        "              lightning>=2.1,<2.4"
    )


def test_json(report: AuditReport) -> None:
    value = json.loads(render_json(report))
    assert value["schema"] == 2
    assert value["counts"] == {"affected": 3, "possible": 1, "unknown": 1, "clear": 2}
    assert value["findings"][0] == {
        "id": "RPR-0001",
        "title": "The LR finder leaves results behind",
        "kind": "bug",
        "documented": None,
        "status": "affected",
        "silent": False,
        "conditions": [
            {
                "package": "lightning",
                "listed": True,
                "range": "lightning>=2.1,<2.4",
                "negated": False,
                "aspect": "affected",
                "source": None,
                "overlap": "all",
                "constraints": [{"raw": "2.2", "file": "requirements.txt", "line": 1, "marker": ""}],
            }
        ],
        "fixed": ["lightning>=2.4"],
        "unaffected": ["lightning<2.1"],
        "workarounds": [
            {"variant": "fixed", "about": "a fresh Trainer", "source": "https://example.org/2", "requires": []}
        ],
        "exceptions": [],
        "evidence": {
            "same_versions": ["2023-12"],
            "other_versions": [],
            "devices": ["cpu"],
            "documented_only": [],
        },
        "upstream": ["https://example.org/1"],
    }
    assert [(ignore["id"], ignore["until"]) for ignore in value["ignored"]] == [("RPR-0006", "2027-01-31")]
    assert [ignore["id"] for ignore in value["expired"]] == ["RPR-0008"]
    assert [ignore["id"] for ignore in value["unused"]] == ["RPR-0005"]
    assert value["unparsed"] == ["requirements.txt:9: 'x y' (not a requirement)"]


# The schema of the OASIS standard, from https://github.com/oasis-tcs/sarif-spec, sarif-2.1/schema.
SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def valid(log: Any) -> Any:
    Draft4Validator.check_schema(SCHEMA)
    assert [error.message for error in Draft4Validator(SCHEMA).iter_errors(log)] == []
    return log


def test_sarif(report: AuditReport) -> None:
    log = valid(json.loads(render_sarif(report)))
    (run,) = log["runs"]
    assert run["tool"]["driver"]["semanticVersion"] == __version__
    results = {result["ruleId"]: result for result in run["results"]}
    assert {id_: (result["kind"], result["level"]) for id_, result in results.items()} == {
        "RPR-0001": ("fail", "error"),
        "RPR-0002": ("fail", "error"),
        "RPR-0003": ("fail", "warning"),
        "RPR-0004": ("open", "none"),
        "RPR-0008": ("fail", "error"),
        "RPR-0006": ("fail", "error"),
    }
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    first = results["RPR-0001"]
    assert first["message"]["text"] == (
        "The LR finder leaves results behind: lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.4. "
        "Fixed in lightning>=2.4. Evidence: measured with these versions on cpu (stack 2023-12)."
    )
    assert first["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "requirements.txt"}, "region": {"startLine": 1}}}
    ]
    assert results["RPR-0006"]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "we know (until 2027-01-31)"}
    ]
    assert "suppressions" not in results["RPR-0008"]


def test_the_schema_refuses_an_unknown_level(report: AuditReport) -> None:
    log = json.loads(render_sarif(report))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert [error.message for error in Draft4Validator(SCHEMA).iter_errors(log)] != []


def test_sarif_of_an_environment_is_valid_for_the_whole_catalogue() -> None:
    here = subject(complete=True, torch="2.0", lightning="2.0", accelerate="0.20")
    done = build_report(here, assess(load(), here, {}), {}, TODAY)
    assert len(valid(json.loads(render_sarif(done)))["runs"][0]["results"]) > 5


def test_the_format_is_chosen_by_its_name(report: AuditReport) -> None:
    shown = {name: choose_format(name, width=120, verbose=False)(report) for name in FormatName}
    assert shown == {
        FormatName.TEXT: render_text(report, width=120),
        FormatName.JSON: render_json(report),
        FormatName.SARIF: render_sarif(report),
    }
