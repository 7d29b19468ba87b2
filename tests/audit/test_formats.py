"""An audit as people, machines and code hosts get it: whole."""

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
from repros.audit.formats import plain_json, sarif, text
from repros.audit.ignore import Ignore, settled
from repros.audit.subject import Pick, Place, Subject
from repros.audit.verdict import Audit, decide
from repros.engine.catalogue import Catalogue, load
from repros.model import Outcome
from tests import factories
from tests.audit.test_assess import measurement, subject

TODAY = dt.date(2026, 11, 21)
DOC = "A toy.\n\nSymptom: it fails.\n\nCause: a cause."
FIXED = factories.variant("fixed", Outcome.PASSES, about="a fresh Trainer", source="https://example.org/2")


def repro(id_: str, affected: str, **given: Any) -> Any:
    ranges = factories.requirements(*filter(None, [affected]))
    packages = tuple(requirement.name for requirement in ranges) or ("torch",)
    return factories.repro(
        id_, affected=ranges, packages=packages, doc=DOC, variants=(factories.variant(), FIXED), **given
    )


SHELF = Catalogue(
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
        "lightning": (Pick("2.2", Place("requirements.txt", 1), Version("2.2")),),
        "torch": (Pick("2.7", Place("requirements.txt", 2), Version("2.7")),),
        "accelerate": (Pick(">=0.20", Place("requirements.txt", 3), releases=SpecifierSet(">=0.20")),),
    },
    complete=False,
    unread=("requirements.txt:9: 'x y' (no requirement)",),
)
IGNORES = (
    Ignore("RPR-0006", "we know", dt.date(2027, 1, 31)),
    Ignore("RPR-0008", "we knew", dt.date(2026, 1, 31)),
    Ignore("RPR-0005", "not ours", dt.date(2027, 1, 31)),
)
SEEN = measurement("2023-12", lightning="2.2", torch="2.7")


@pytest.fixture
def audit() -> Audit:
    found = assess(SHELF, SUBJECT, {SEEN.unit: SEEN})
    return decide(SUBJECT, found, settled(IGNORES, SHELF), TODAY)


TEXT = """\
RPR-0001 The LR finder leaves results behind
  because     lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.4
  fixed in    lightning>=2.4
  free of it  lightning<2.1
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    measured on these versions, on cpu (stack 2023-12)
  more        repros show RPR-0001

RPR-0002 A toy (silent)
  because     lightning 2.2 (requirements.txt:1) is in lightning<2.6
  fixed in    lightning>=2.6
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented only; nothing was measured
  more        repros show RPR-0002

RPR-0008 A toy
  because     torch 2.7 (requirements.txt:2): every release
  fixed in    no release yet
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented only; nothing was measured
  more        repros show RPR-0008

RPR-0003 A toy: possible, it depends on what is installed in the end
  because     accelerate >=0.20 (requirements.txt:3) may be in accelerate<1
  fixed in    accelerate>=1
  workaround  fixed: a fresh Trainer https://example.org/2
  evidence    documented only; nothing was measured
  more        repros show RPR-0003

Cannot tell
  bitsandbytes is not named there: RPR-0004
  not understood: requirements.txt:9: 'x y' (no requirement)
  an environment tells all: repros audit --python PATH

ignored RPR-0006: until 2027-01-31, we know
no longer ignored RPR-0008: expired on 2026-01-31 (we knew); decide again, or upgrade
ignored in vain RPR-0005: it is not there

requirements.txt: of 8 documented failures 3 affected (2 fixed in a newer release), 1 possible, \
1 cannot be told, 2 not
  affected, 1 ignored"""


def test_for_people(audit: Audit) -> None:
    assert text.text(audit, 120).plain == TEXT


def test_for_people_who_want_all(audit: Audit) -> None:
    said = text.text(audit, 120, verbose=True).plain
    assert "\nCannot tell\n  RPR-0004: bitsandbytes is not named\n" in said
    assert "\nNot affected\n  RPR-0005: lightning 2.2 (requirements.txt:1) is not in lightning<2\n" in said


def test_fits_a_narrow_terminal(audit: Audit) -> None:
    lines = text.text(audit, 60, verbose=True).plain.splitlines()
    assert max(map(len, lines)) <= 60
    assert "\n".join(lines[:3]) == (
        "RPR-0001 The LR finder leaves results behind\n"
        "  because     lightning 2.2 (requirements.txt:1) is in\n"
        "              lightning>=2.1,<2.4"
    )


def test_for_machines(audit: Audit) -> None:
    said = json.loads(plain_json.text(audit))
    assert said["counts"] == {"affected": 3, "possible": 1, "unknown": 1, "clear": 2}
    assert said["findings"][0] == {
        "id": "RPR-0001",
        "title": "The LR finder leaves results behind",
        "status": "affected",
        "silent": False,
        "because": [
            {
                "package": "lightning",
                "named": True,
                "range": "lightning>=2.1,<2.4",
                "admits": "all",
                "found": [{"said": "2.2", "file": "requirements.txt", "line": 1, "marker": ""}],
            }
        ],
        "fixed": ["lightning>=2.4"],
        "free": ["lightning<2.1"],
        "workarounds": [
            {"variant": "fixed", "about": "a fresh Trainer", "source": "https://example.org/2", "requires": []}
        ],
        "evidence": {"here": ["2023-12"], "elsewhere": [], "tiers": ["cpu"], "documented": []},
        "upstream": ["https://example.org/1"],
    }
    assert [(one["id"], one["until"]) for one in said["ignored"]] == [("RPR-0006", "2027-01-31")]
    assert [one["id"] for one in said["expired"]] == ["RPR-0008"]
    assert [one["id"] for one in said["idle"]] == ["RPR-0005"]
    assert said["unread"] == ["requirements.txt:9: 'x y' (no requirement)"]


# From https://github.com/oasis-tcs/sarif-spec, sarif-2.1/schema; the OASIS standard's own.
SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def valid(log: Any) -> Any:
    Draft4Validator.check_schema(SCHEMA)
    assert [error.message for error in Draft4Validator(SCHEMA).iter_errors(log)] == []
    return log


def test_for_code_hosts(audit: Audit) -> None:
    log = valid(json.loads(sarif.text(audit)))
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
        "Fixed in lightning>=2.4. Evidence: measured on these versions, on cpu (stack 2023-12)."
    )
    assert first["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "requirements.txt"}, "region": {"startLine": 1}}}
    ]
    assert results["RPR-0006"]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "we know (until 2027-01-31)"}
    ]
    assert "suppressions" not in results["RPR-0008"]


def test_the_schema_refuses_what_is_wrong(audit: Audit) -> None:
    log = json.loads(sarif.text(audit))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert [error.message for error in Draft4Validator(SCHEMA).iter_errors(log)] != []


def test_the_whole_catalogue_is_valid_for_code_hosts_of_an_environment_too() -> None:
    here = subject(complete=True, torch="2.0", lightning="2.0", accelerate="0.20")
    done = decide(here, assess(load(), here, {}), {}, TODAY)
    assert len(valid(json.loads(sarif.text(done)))["runs"][0]["results"]) > 5
