"""The Markdown block for upstream, whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.advise.report.build import EnvironmentSummary, IssueReport, ReportedFailure, RunSummary, VariantSummary
from repros.advise.report.markdown import Form, markdown
from repros.model import FailureKind, Role, Upstream
from tests.transcript import mask

FAILURE = ReportedFailure(
    id="RPR-0001",
    title="The LR finder leaves logged results on the CPU",
    silent=False,
    path="repros/catalogue/lightning/lr_finder.py",
    packages=("lightning",),
    affected=("lightning>=2.1,<2.4",),
    measurable=("lightning>=2.1",),
    kind=FailureKind.BUG,
    documented=None,
    upstream=Upstream(reports=("https://example.org/1",), fixed_by=("https://example.org/2",)),
    sections={"Symptom": "an error.", "Cause": "a move.", "Fix": "Lightning 2.4."},
    variants={
        "failing": VariantSummary("failing", Role.FAILS, "finds, then fits", None, None),
        "fixed": VariantSummary("fixed", Role.WORKS, "a fresh Trainer", None, "https://example.org/2"),
        "summed": VariantSummary("summed", Role.WORKS, "logs a sum", None, None),
        "checked": VariantSummary("checked", Role.DOES_NOT_FIX, "moves the tensor", "the tensor has to be moved", None),
    },
    script="import torch\n",
)
ENVIRONMENT = EnvironmentSummary(
    name="2023-12",
    stack=True,
    python="3.11.7",
    platform="Linux",
    versions={"torch": "2.1.2", "lightning": "2.1.3"},
    collect_env="PyTorch version: 2.1.2",
    collect_env_problem=None,
)
FAILING = RunSummary(
    "failing", "ddp", "sim", "2023-12", 2, "warm", "fails", True, "reproduced", "RuntimeError: a | b `c`", "why"
)
FIXED = replace(FAILING, variant="fixed", expected="passes", verdict="clean", signature=None, reason="returned")
CHECKED = replace(FAILING, variant="checked")
NOT_RUN = replace(FAILING, device="cuda", verdict="unavailable", signature=None, reason="no CUDA device here")
REPORT = IssueReport(FAILURE, (ENVIRONMENT,), (FAILING, FIXED, CHECKED, NOT_RUN), "Traceback:\nRuntimeError: a")

RUNS = (
    replace(FIXED, verdict="unfixed", signature="X"),
    replace(FIXED, affected=False),
    replace(FIXED, verdict="infra"),
    replace(FIXED, verdict="unavailable"),
)
"""Runs of the fix that do not confirm it."""
FAILING_RUNS = (
    replace(FAILING, verdict="clean", affected=False, device="cpu", signature=None),
    replace(FAILING, verdict="gone", device="cpu", signature=None),
)
"""Runs of `failing` that do not show the failure."""
OWN = replace(
    ENVIRONMENT, name="own environment", stack=False, collect_env="", collect_env_problem="it failed (no `torch`)"
)
ON_BOTH = replace(REPORT, environments=(ENVIRONMENT, OWN), runs=(FAILING, replace(FAILING, environment=OWN.name)))


def test_text(snapshot: SnapshotAssertion) -> None:
    """A whole block, and the lines that others have otherwise."""
    others = [ON_BOTH, *(replace(REPORT, runs=(FAILING, run)) for run in RUNS)]
    others += [replace(REPORT, runs=(run,)) for run in FAILING_RUNS]
    whole = markdown(REPORT)
    lines = [line for other in others for line in markdown(other).splitlines() if line not in whole.splitlines()]
    assert snapshot == mask("\n".join([whole, "Lines of other blocks:", "", *dict.fromkeys(lines), ""]))


def headings(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]


def test_under_pytorchs_headings_the_content_is_the_same() -> None:
    of_torch = markdown(replace(REPORT, failure=replace(FAILURE, packages=("torch",))))
    assert len(headings(of_torch)) == 2
    assert markdown(REPORT, Form.PYTORCH) == of_torch
    blocks = markdown(REPORT).split("\n\n")
    paragraphs = {block for block in blocks if not block.startswith("### ")}
    assert paragraphs - {blocks[-1]} < set(of_torch.split("\n\n"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.verdict}-{run.affected}")
def test_a_workaround_that_is_not_confirmed_is_not_verified(run: RunSummary) -> None:
    def about(report: IssueReport) -> str:
        (line,) = (line for line in markdown(report).splitlines() if line.startswith("- `fixed`:"))
        return line

    assert about(replace(REPORT, runs=(FAILING, run))) != about(REPORT)


def test_several_environments_have_a_column() -> None:
    text = markdown(ON_BOTH)
    assert "| variant | strategy | device | on | verdict | seen |\n" in text
    assert "| `failing` | ddp | sim | own environment | **reproduced** |" in text
    assert "`` it failed (no `torch`) ``" in text


def test_an_observation_stays_in_its_code_block() -> None:
    text = markdown(replace(REPORT, traceback="```\n# heading\n@mention"))
    assert "\n````\n```\n# heading\n@mention\n````\n" in text
