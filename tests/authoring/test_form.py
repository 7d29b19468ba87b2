"""The form for a new failure, filled in and rendered as GitHub does it, is parsed field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from repros.authoring.new import form
from repros.authoring.new.form import parse_form
from repros.engine.header.keys import REPRO, VARIANT
from repros.model import Device
from repros.model.errors import ReprosError

FORM: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[2] / ".github/ISSUE_TEMPLATE/new_failure.yml").read_text(encoding="utf-8")
)
FIELDS = {item["attributes"]["label"]: item for item in FORM["body"] if item["type"] != "markdown"}

ANSWERS = {
    "Title": 'The LR finder leaves "logged" results on the CPU',
    "Family": "lightning",
    "Upstream threads": "- https://github.com/Lightning-AI/pytorch-lightning/issues/19813\n\n"
    "https://github.com/Lightning-AI/pytorch-lightning/issues/19912",
    "Kind": "misuse",
    "Where the behaviour is documented": "https://example.org/docs",
    "Packages": "lightning, torch",
    "Affected releases": "lightning>=2.1,<2.4\ntorch>=2.1",
    "Required releases": "torch>=2.1",
    "Dependencies": "torch>=2.1\n* `lightning>=2.1`",
    "Stack": "2023-12",
    "Strategies": "ddp, ddp_spawn",
    "Strategies whose launcher matters": "ddp_spawn",
    "Devices": "cuda, sim",
    "Processes": "2",
    "Fewest devices": "1",
    "Deadline": "90",
    "How it shows": "a wrong result without an error",
    "Symptom": "A `RuntimeError`\nafter the search, with a \\ in it.",
    "Cause": "A teardown.\n\n### Not a field\n\nmoves it.",
    "Fix": 'Lightning 2.4, says the log: "moved"',
    "Failing code": "import torch\n\n### Title\nassert torch.ones(1).item() == 2, 'expected 2'",
    "What the failing code does": "finds, then fits",
    "Exception": "AssertionError",
    "Message": "expected two of them\nexpected 2 of them",
    "Frames": "lightning/trainer.py:fit",
    "Fixed code": "assert accelerator == 'cpu'",
    "What the fixed code does": "a fresh Trainer",
    "Where the fix is documented": "https://github.com/Lightning-AI/pytorch-lightning/pull/19814",
    "A documented solution that does not work": "the tensor has to be moved",
    "Code of that solution": "raise SystemExit",
    "Where that solution is documented": "https://example.org/claim",
}


def rendered(answers: dict[str, str], end: str = "\n") -> str:
    """Return the issue's text as GitHub renders the form: a heading for each field, code in fences."""
    parts = []
    for label, item in FIELDS.items():
        answer = answers.get(label, "_No response_")
        language = item["attributes"].get("render")
        if language and label in answers:
            answer = f"```{language}\n{answer}\n```"
        parts.append(f"### {label}\n\n{answer}")
    return "\n\n".join(parts).replace("\n", end)


def test_every_field_of_the_form_is_known() -> None:
    assert set(FIELDS) == form.LABELS
    assert set(ANSWERS) == set(FIELDS) - {"Ending"}


def test_the_fields_are_the_keys_of_the_header() -> None:
    tables = {place for place, _ in form.KEYS.values()}
    asked = {key for table, key in tables if table == "tool.repro"}
    chosen = {"id", "variants"}  # `new` chooses the id, the variants are tables
    history = {"upstream.introduced_by", "upstream.fixed_by", "upstream.unreleased_fix", "upstream.related"}
    later = {"finds", "exists", "exists_source"}  # measured and looked up once the script is there
    assert asked == REPRO.keys() - chosen - history - later
    of_variants = {key for table, key in tables if ".variants." in table}
    # A variant's own strategies, devices and ranges are for authors who know that they differ.
    own = {"outcome", "strategies", "devices", "affected", "requires", "finds", "contrast"}
    assert of_variants == VARIANT.keys() - own


def test_what_the_header_requires_the_form_requires() -> None:
    required = {label for label, item in FIELDS.items() if item.get("validations", {}).get("required")}
    keys = {form.KEYS[label][0].key for label in required if label in form.KEYS}
    # Only a user of this project knows the stacks; the template has one.
    assert {key for key, rule in REPRO.items() if rule.required} - {"id", "variants", "home"} <= keys
    assert {"Failing code", "Symptom", "Family"} <= required


def test_the_form_offers_every_device() -> None:
    assert FIELDS["Devices"]["attributes"]["options"] == [device.value for device in Device]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_filled_form(end: str) -> None:
    filled = parse_form(rendered(ANSWERS, end))
    assert (filled.title, filled.family) == (ANSWERS["Title"], "lightning")
    assert filled.slug == "the_lr_finder_leaves_logged_results_on_the_cpu"
    repro, failing = "tool.repro", "tool.repro.variants.failing"
    assert dict(filled.values) == {
        (repro, "title"): ANSWERS["Title"],
        (repro, "upstream.reports"): [
            "https://github.com/Lightning-AI/pytorch-lightning/issues/19813",
            "https://github.com/Lightning-AI/pytorch-lightning/issues/19912",
        ],
        (repro, "kind"): "misuse",
        (repro, "documented"): "https://example.org/docs",
        (repro, "packages"): ["lightning", "torch"],
        (repro, "affected"): ["lightning>=2.1,<2.4", "torch>=2.1"],
        (repro, "requires"): ["torch>=2.1"],
        ("", "dependencies"): ["torch>=2.1", "lightning>=2.1"],
        (repro, "home"): "2023-12",
        (repro, "strategies"): ["ddp", "ddp_spawn"],
        (repro, "cold"): ["ddp_spawn"],
        (repro, "devices"): ["cuda", "sim"],
        (repro, "processes"): 2,
        (repro, "minimum"): 1,
        (repro, "deadline"): 90,
        (repro, "silent"): True,
        (failing, "about"): "finds, then fits",
        (failing, "raises"): "AssertionError",
        (failing, "match"): ["expected two of them", "expected 2 of them"],
        (failing, "frames"): ["lightning/trainer.py:fit"],
        ("tool.repro.variants.fixed", "about"): "a fresh Trainer",
        ("tool.repro.variants.fixed", "source"): "https://github.com/Lightning-AI/pytorch-lightning/pull/19814",
        ("tool.repro.variants.claimed", "claim"): "the tensor has to be moved",
        ("tool.repro.variants.claimed", "source"): "https://example.org/claim",
    }
    assert filled.sections == {
        "Symptom": "A `RuntimeError` after the search, with a \\ in it.",
        "Cause": "A teardown. ### Not a field moves it.",
        "Fix": ANSWERS["Fix"],
    }
    assert filled.code == {
        "failing": ANSWERS["Failing code"],
        "fixed": ANSWERS["Fixed code"],
        "claimed": ANSWERS["Code of that solution"],
    }


def test_empty_fields_are_left_out() -> None:
    filled = parse_form(rendered({"Title": "It breaks", "Affected releases": "Every release."}))
    assert dict(filled.values) == {("tool.repro", "title"): "It breaks", ("tool.repro", "affected"): []}
    assert (filled.family, filled.sections, filled.code) == (None, {}, {})


@pytest.mark.parametrize("text", ["", "no form", "### Title\n\n_No response_"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ReprosError, match="'### Title'"):
        parse_form(text)
