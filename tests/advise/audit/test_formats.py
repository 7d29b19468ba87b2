"""Audit reports as JSON and SARIF."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator
from markdown_it import MarkdownIt

from repros import __version__
from repros.advise.audit.assess import assess
from repros.advise.audit.formats import FormatName, choose_format
from repros.advise.audit.formats.json_format import render_json
from repros.advise.audit.formats.markdown import render_markdown
from repros.advise.audit.formats.sarif import render_sarif
from repros.advise.audit.formats.text import render_text
from repros.advise.audit.report import AuditReport, build_report
from tests.advise.audit.samples import EVERYTHING, TODAY, make_report, report_on_the_catalogue
from tests.advise.audit.test_assess import subject
from tests.package_catalogue import load


@pytest.fixture
def report() -> AuditReport:
    return make_report(EVERYTHING)


def test_json(report: AuditReport) -> None:
    value = json.loads(render_json(report))
    assert value["schema"] == 3
    assert value["counts"] == {"affected": 5, "possible": 1, "unknown": 1, "clear": 2}
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
        "RPR-0009": ("fail", "note"),
        "RPR-0010": ("fail", "error"),
        "RPR-0006": ("fail", "error"),
    }
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    first = results["RPR-0001"]
    messages = {id_: result["message"]["text"] for id_, result in results.items()}
    for id_, parts in {
        "RPR-0001": ("The LR finder leaves results behind", "lightning 2.2 (requirements.txt:1)", "lightning>=2.4"),
        "RPR-0010": ("A toy", "lightning>=2.3,<2.4 or lightning>=2.5"),
        "RPR-0008": ("A toy", "torch 2.7 (requirements.txt:2)"),
    }.items():
        assert all(part in messages[id_] for part in parts)
    helps = {rule["id"]: rule["help"]["text"] for rule in run["tool"]["driver"]["rules"]}
    workaround = "- a fresh Trainer (variant fixed) https://example.org/2"
    assert helps["RPR-0008"].splitlines()[-1] == helps["RPR-0009"].splitlines()[-1] == workaround
    assert len(helps["RPR-0008"].splitlines()) == len(helps["RPR-0009"].splitlines()) + 1, "how it is fixed"
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


@pytest.mark.of_all_scripts
def test_sarif_of_an_environment_is_valid_for_the_whole_catalogue() -> None:
    here = subject(complete=True, torch="2.0", lightning="2.0", accelerate="0.20")
    done = build_report(here, assess(load(), here, {}), {}, TODAY, EVERYTHING)
    assert len(valid(json.loads(render_sarif(done)))["runs"][0]["results"]) > 5


def test_the_format_is_chosen_by_its_name(report: AuditReport) -> None:
    shown = {name: choose_format(name, width=120, verbose=False, show_all=False)(report) for name in FormatName}
    assert shown == {
        FormatName.TEXT: render_text(report, width=120),
        FormatName.JSON: render_json(report),
        FormatName.MARKDOWN: render_markdown(report),
        FormatName.SARIF: render_sarif(report),
    }


def test_no_format_names_a_contrast_or_says_twice_that_something_is_fixed() -> None:
    contrasts = {(repro.id, variant.name) for repro in load() for variant in repro.variants if variant.contrast}
    assert len(contrasts) >= 4, "nothing is left out"
    done = report_on_the_catalogue(EVERYTHING)
    text = render_text(done, width=500, verbose=True).plain
    data = {finding["id"]: finding["workarounds"] for finding in json.loads(render_json(done))["findings"]}
    rules = {
        rule["id"]: rule["help"]["text"]
        for rule in json.loads(render_sarif(done))["runs"][0]["tool"]["driver"]["rules"]
    }
    for id_, name in contrasts:
        (about,) = (variant.about for variant in load().find(id_).variants if variant.name == name)
        assert about not in text
        assert name not in {workaround["variant"] for workaround in data[id_]}
        assert f"variant {name})" not in rules.get(id_, "")
    assert "fixed:" not in text


def test_sarif_has_only_what_is_reported() -> None:
    done = report_on_the_catalogue()
    (run,) = valid(json.loads(render_sarif(done)))["runs"]
    assert [result["ruleId"] for result in run["results"]] == [one.repro.id for one in done.reported]
    assert len(done.reported) < len(done.others)
    assert all(result["level"] == "error" for result in run["results"] if "bug" in tags(run, result))


def tags(run: Any, result: Any) -> list[str]:
    found: list[str] = run["tool"]["driver"]["rules"][result["ruleIndex"]]["properties"]["tags"]
    return found


def test_markdown_of_the_audited_file_is_code() -> None:
    hostile = "<img src=x>|`@everyone`\n# heading"
    here = replace(subject(torch="2.0", lightning="2.0"), name=hostile, unparsed=(hostile,))
    done = build_report(here, assess(load(), here, {}), {}, TODAY, base=(hostile, []))
    tokens = MarkdownIt("commonmark").enable("table").parse(render_markdown(done))
    inline = [child for token in tokens for child in token.children or ()]
    assert not [one for one in inline if one.type in {"html_inline", "link_open", "image"}]
    assert all("@everyone" not in one.content for one in inline if one.type == "text")
    assert {"html_block", "heading_open"}.isdisjoint(token.type for token in tokens)
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows == len(done.reported) + 1
    cells = sum(token.type == "td_open" for token in tokens)
    assert cells == 3 * len(done.reported), "no bar of the file makes a cell"
